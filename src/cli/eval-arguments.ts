/** The flags of `rollcall eval`, after `vf-eval`'s, read and checked as far as that is possible without a platform. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { RunRequestInput } from "../core/run.ts";
import { usageError } from "./exit.ts";

export const EVAL_HELP = `Usage: rollcall eval <environment> [flags]

Evaluates a model on an environment (an id, or id@version) and prints a table of results.

  -m, --model NAME            model name sent to the endpoint
  -b, --base-url URL          OpenAI-compatible endpoint, up to and including /v1
                              (default: OPENAI_BASE_URL; else, for the demo environments, a scripted model)
  -k, --api-key-var NAME      environment variable that holds the endpoint's key (default: OPENAI_API_KEY)
  -a, --env-args ARGS         arguments of the environment: JSON, a JSON file, or k=v (repeatable)
      --dataset FILE.jsonl    task rows for an environment whose dataset is uploaded
  -n, --num-examples N        tasks; -1 = all (default: all of a finite dataset, 5 of a generated one)
  -r, --rollouts-per-example N  (default: 1)
  -c, --max-concurrent N      rollouts running at once (default: 32)
  -t, --max-tokens N
  -T, --temperature X
  -S, --sampling-args JSON    more sampling arguments; they win over -t and -T
      --max-retries N         retries of one model call (default: 2)
      --shuffle, --seed N     seeded order of tasks
      --min-scored SHARE      exit 3 unless this share of the rollouts got a score
      --fail-on-error         exit 1 if any rollout failed or has no score
      --timeout S             cancel the run and exit 1 after this many seconds
  -f, --file RUN.json         a run request to start from; flags win over it
      --name TEXT, --metadata k=v (repeatable)
  -s, --save-results          write results.jsonl and metadata.json under outputs/evals
  -o, --output-dir DIR        the same, under DIR
      --json                  exactly one JSON object on stdout
      --platform URL          the platform to use (default: ROLLCALL_URL; key: ROLLCALL_API_KEY)
      --ephemeral             a platform of its own that keeps nothing
  -R, --resume RUN_ID         follow a run that was started earlier, to its end
`;

const FLAGS = {
  help: { type: "boolean", short: "h" },
  model: { type: "string", short: "m" },
  "base-url": { type: "string", short: "b" },
  "api-key-var": { type: "string", short: "k" },
  "env-args": { type: "string", short: "a", multiple: true },
  dataset: { type: "string" },
  "num-examples": { type: "string", short: "n" },
  "rollouts-per-example": { type: "string", short: "r" },
  "max-concurrent": { type: "string", short: "c" },
  "max-tokens": { type: "string", short: "t" },
  temperature: { type: "string", short: "T" },
  "sampling-args": { type: "string", short: "S" },
  "max-retries": { type: "string" },
  shuffle: { type: "boolean" },
  seed: { type: "string" },
  "min-scored": { type: "string" },
  "fail-on-error": { type: "boolean", default: false },
  timeout: { type: "string" },
  file: { type: "string", short: "f" },
  name: { type: "string" },
  metadata: { type: "string", multiple: true },
  "save-results": { type: "boolean", short: "s", default: false },
  "output-dir": { type: "string", short: "o" },
  json: { type: "boolean", default: false },
  platform: { type: "string" },
  ephemeral: { type: "boolean", default: false },
  resume: { type: "string", short: "R" },
} as const;

/** A run request in the making: the endpoint and the number of examples may still be open. */
export type DraftRequest = Partial<RunRequestInput>;

export interface EvalArguments {
  readonly help: boolean;
  readonly json: boolean;
  readonly draft: DraftRequest;
  readonly resume: string | null;
  readonly platform: string | undefined;
  readonly ephemeral: boolean;
  readonly failOnError: boolean;
  /** The run's failure for too few scores counts as a gate when somebody asked for it here. */
  readonly gated: boolean;
  readonly timeoutMs: number | null;
  /** Where to write results; null = nowhere. */
  readonly outputDir: string | null;
}

type Values = ReturnType<typeof readFlags>["values"];

/** Throws a CommandError of exit 2 that names the flag. */
export function parseEvalArguments(argv: readonly string[]): EvalArguments {
  const { values, positionals } = readFlags(argv);
  if (positionals.length > 1) throw usageError(`one environment, not ${positionals.join(", ")}`);
  const timeout = numberFlag(values, "timeout");
  if (timeout !== undefined && timeout <= 0) {
    throw usageError("--timeout: must be more than 0 seconds", "timeout");
  }
  return {
    help: values.help ?? false,
    json: values.json,
    draft: draftRequest(values, positionals[0]),
    resume: values.resume ?? null,
    platform: values.platform,
    ephemeral: values.ephemeral,
    failOnError: values["fail-on-error"],
    gated: values["min-scored"] !== undefined,
    timeoutMs: timeout === undefined ? null : timeout * 1000,
    outputDir: values["output-dir"] ?? (values["save-results"] ? "outputs" : null),
  };
}

function readFlags(argv: readonly string[]) {
  return parseArgs({ args: negativeValues(argv), options: FLAGS, allowPositionals: true });
}

/** `-n -1` is what every eval tool takes; parseArgs wants `--num-examples=-1`. */
function negativeValues(argv: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of argv) {
    const before = joined.at(-1);
    const takesNumber = before === "-n" || before === "--num-examples";
    if (takesNumber && /^-\d+$/.test(word)) joined.splice(-1, 1, `--num-examples=${word}`);
    else joined.push(word);
  }
  return joined;
}

function draftRequest(values: Values, environment: string | undefined): DraftRequest {
  const file = values.file === undefined ? {} : jsonObject(readText(values.file, "file"), "file");
  const draft: Record<string, unknown> = {
    ...file,
    ...defined({
      environment,
      name: values.name,
      model: values.model,
      dataset: values.dataset === undefined ? undefined : readRows(values.dataset),
      num_examples: numberFlag(values, "num-examples"),
      rollouts_per_example: numberFlag(values, "rollouts-per-example"),
      max_concurrent: numberFlag(values, "max-concurrent"),
      seed: numberFlag(values, "seed"),
      shuffle: values.shuffle,
      min_scored: numberFlag(values, "min-scored"),
    }),
  };
  merge(draft, "endpoint", endpointOf(values));
  merge(draft, "environment_args", environmentArgs(values["env-args"] ?? []));
  merge(draft, "sampling", samplingOf(values));
  merge(draft, "limits", defined({ max_retries: numberFlag(values, "max-retries") }));
  merge(draft, "metadata", Object.fromEntries((values.metadata ?? []).map(metadataPair)));
  // The platform parses the request and names the field of every mistake; parsing it here too could only disagree.
  return draft as DraftRequest;
}

function merge(draft: Record<string, unknown>, field: string, more: Record<string, unknown>): void {
  if (Object.keys(more).length > 0) draft[field] = { ...Object(draft[field]), ...more };
}

function endpointOf(values: Values): Record<string, unknown> {
  const baseUrl = values["base-url"];
  const variable = values["api-key-var"];
  if (baseUrl !== undefined && !URL.canParse(baseUrl)) {
    throw usageError(`--base-url: ${baseUrl} is not a URL`, "base-url");
  }
  const key = variable === undefined ? undefined : process.env[variable];
  if (variable !== undefined && !key) {
    throw usageError(
      `--api-key-var: the environment variable ${variable} is not set`,
      "api-key-var",
    );
  }
  // OpenAI's own variable goes with a URL given here; with one from a file, only when asked for by -k.
  const usual = baseUrl === undefined ? undefined : process.env["OPENAI_API_KEY"] || undefined;
  return defined({ base_url: baseUrl, api_key: key ?? usual });
}

function samplingOf(values: Values): Record<string, unknown> {
  const given = values["sampling-args"];
  return {
    ...defined({
      max_tokens: numberFlag(values, "max-tokens"),
      temperature: numberFlag(values, "temperature"),
    }),
    ...(given === undefined ? {} : jsonObject(given, "sampling-args")),
  };
}

/** Each is a JSON object, the name of a file with one, or k=v where v is JSON or else a string. */
function environmentArgs(given: readonly string[]): Record<string, unknown> {
  return Object.assign({}, ...given.map(environmentArg));
}

function environmentArg(text: string): Record<string, unknown> {
  if (text.trimStart().startsWith("{")) return jsonObject(text, "env-args");
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    return jsonObject(readText(text, "env-args"), "env-args");
  }
  return { [name]: jsonOrText(value) };
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

function metadataPair(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw usageError(`--metadata: ${text} is not k=v`, "metadata");
  }
  return [name, value];
}

function readRows(file: string): unknown[] {
  const lines = readText(file, "dataset")
    .replace(/^\uFEFF/, "")
    .split("\n");
  return lines.flatMap((line, index) => {
    return line.trim() === "" ? [] : [jsonObject(line, "dataset", `${file}:${index + 1}`)];
  });
}

function numberFlag(values: Values, name: keyof Values): number | undefined {
  const text = values[name];
  if (typeof text !== "string") return undefined;
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) {
    throw usageError(`--${name}: ${text} is not a number`, name);
  }
  return number;
}

function readText(file: string, flag: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw usageError(`--${flag}: ${why}`, flag);
  }
}

function jsonObject(text: string, flag: string, where = "it"): Record<string, unknown> {
  const value = jsonOrText(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw usageError(`--${flag}: ${where} is not a JSON object`, flag);
  }
  return { ...value };
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
