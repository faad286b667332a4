/** The inputs of action.yml, as a command line of `rollcall eval`. */

/** An input or a variable of the runner is wrong; the message names it. */
export class InputError extends Error {
  override readonly name = "InputError";
}

export type Variables = Readonly<Record<string, string | undefined>>;

/** Inputs that are flags of the same name. */
const FLAGS = [
  ...["model", "base-url", "dataset", "num-examples", "rollouts-per-example"],
  ...["min-scored", "fail-under", "max-drop", "metric", "junit"],
];
/** The same, with a value on each line. */
const LISTS = ["env-args", "judge", "baseline", "metadata"];

export interface Inputs {
  readonly environment: string;
  readonly model: string;
  /** The words of the command after `eval`, without the flags of its output. */
  readonly words: readonly string[];
  /** What the command adds to the variables of the job. */
  readonly keys: Readonly<Record<string, string>>;
  /** The path as it was given; null for no report. */
  readonly junit: string | null;
  readonly comment: boolean;
  readonly token: string;
  /** The address of the permanent platform without a slash at its end; null without one. */
  readonly platform: string | null;
}

/** Throws an InputError. */
export function readInputs(env: Variables): Inputs {
  const input = (name: string) => (env[`INPUT_${name.toUpperCase().replaceAll("-", "_")}`] ?? "").trim();
  const lines = (name: string) =>
    input(name)
      .split(/\r?\n/)
      .flatMap((line) => line.trim() || []);
  const environment = input("environment");
  if (environment === "" || environment.startsWith("-")) {
    throw new InputError(`environment: must name an environment, not ${JSON.stringify(environment)}`);
  }
  const comment = input("comment");
  if (comment !== "true" && comment !== "false") {
    throw new InputError(`comment: must be true or false, not ${JSON.stringify(comment)}`);
  }
  // With "=" no value is read as a flag.
  const flags = FLAGS.flatMap((name) => (input(name) === "" ? [] : `--${name}=${input(name)}`));
  const lists = LISTS.flatMap((name) => lines(name).map((value) => `--${name}=${value}`));
  return {
    environment,
    model: input("model"),
    words: [environment, ...flags, ...lists, ...lines("args")],
    keys: {
      ...(input("api-key") !== "" && { OPENAI_API_KEY: input("api-key") }),
      ...(input("platform-url") !== "" && { ROLLCALL_URL: input("platform-url") }),
      ...(input("platform-key") !== "" && { ROLLCALL_API_KEY: input("platform-key") }),
    },
    junit: input("junit") || null,
    comment: comment === "true",
    token: input("github-token"),
    platform: platformUrl(input("platform-url") || (env["ROLLCALL_URL"] ?? "")),
  };
}

function platformUrl(text: string): string | null {
  if (text === "") return null;
  if (/^https?:/i.test(text) && URL.canParse(text)) return text.replace(/\/+$/, "");
  throw new InputError("platform-url: must be an http or https URL");
}

/** A variable that the runner sets. */
export function variable(env: Variables, name: string): string {
  const value = env[name];
  if (value) return value;
  throw new InputError(`${name}: is not set: this script is a step of an action of GitHub`);
}

/** Undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value below these names; undefined if there is none. For JSON from GitHub and from the command. */
export function at(value: unknown, ...names: readonly (string | number)[]): unknown {
  return names.reduce<unknown>((inside, name) => {
    return typeof inside === "object" && inside !== null ? Reflect.get(inside, name) : undefined;
  }, value);
}

export function textAt(value: unknown, ...names: readonly (string | number)[]): string | null {
  const found = at(value, ...names);
  return typeof found === "string" ? found : null;
}

export function numberAt(value: unknown, ...names: readonly (string | number)[]): number | null {
  const found = at(value, ...names);
  return typeof found === "number" ? found : null;
}
