/**
 * `rollcall env validate`: plays an environment with simple policies in this process, makes it once in workerd, and says
 * what is wrong with it. No platform and no endpoint take part.
 */
import { Console } from "node:console";
import { once } from "node:events";

import { type Check, unplayed, type Validation, validateEnvironment } from "../../core/validation/validate.ts";
import type { EnvironmentPackage } from "../../local/environment-package.ts";
import type { Tried } from "../../local/try-in-workerd.ts";
import { environmentArgs } from "../argument-values.ts";
import { readCommandLine } from "../command-line.ts";
import { ENV_VALIDATE } from "../commands.ts";
import { CommandError, EXIT, type ExitCode } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { onAnotherDay } from "./another-day.ts";
import { CAPABILITIES, type Cast, cast, locate, openSqlite, unmetNeeds, uploadedRows } from "./validation-subject.ts";

const EXAMPLES = 20;
const MARKS: Readonly<Record<Check["status"], string>> = {
  ok: "✓",
  warning: "!",
  error: "✗",
  skipped: "–",
};

interface Request {
  readonly args: Record<string, unknown>;
  readonly examples: number;
  /** A file of rows. */
  readonly dataset: string | undefined;
}

export async function envValidateCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(ENV_VALIDATE, argv);
  const term = terminal(line.on("json"));
  const request = {
    args: environmentArgs(line.all("args")),
    examples: line.count("examples", 1) ?? EXAMPLES,
    dataset: line.text("dataset"),
  };
  const found = locate(line.one("one environment"));
  // What an environment prints must not end up in the one object of --json.
  globalThis.console = new Console(process.stderr);
  const played = await Promise.race([validate(found, request), stuck()]);
  const validation = await inWorkerd(found, request, played);
  term.print(validationText(found, validation));
  if (line.on("json")) {
    printJson({ environment: found.id, version: found.version, ...validation });
  }
  return validation.ok ? EXIT.good : EXIT.bad;
}

async function validate(found: EnvironmentPackage, request: Request): Promise<Validation> {
  let made: Cast;
  try {
    made = await cast(found, request.args);
  } catch (thrown) {
    if (thrown instanceof CommandError) throw thrown;
    const fault = thrown instanceof Error ? thrown.message : String(thrown);
    return unplayed("build", `it cannot be made: ${fault}`);
  }
  const { environment } = made;
  return validateEnvironment(
    { ...made, capabilities: CAPABILITIES, openSqlite, later: onAnotherDay },
    {
      examples: request.examples,
      uploaded: uploadedRows(found, environment, request.dataset),
      unmet: unmetNeeds(environment.needs),
    },
  );
}

/** Cloudflare's limits for a whole Worker, minified and gzipped: on the free plan, and on a paid one. */
const FREE_BYTES = 3 * 1024 ** 2;
const PAID_BYTES = 10 * 1024 ** 2;

/** The same, with what workerd says of it: Node has, and does, what a Worker has not. */
async function inWorkerd(found: EnvironmentPackage, { args }: Request, played: Validation): Promise<Validation> {
  // What cannot be made here is said already.
  if (played.checks.some(({ name }) => name === "build")) return played;
  const { tryInWorkerd } = await import("../../local/try-in-workerd.ts");
  const check = checkWorkerd(await tryInWorkerd(found, args));
  const ok = played.ok && check.status !== "error";
  return { ...played, checks: [...played.checks, check], ok };
}

function checkWorkerd({ refused, bytes }: Tried): Check {
  const name = "workerd";
  const size = `${(bytes / 1000).toFixed(0)} kB gzipped with what it imports`;
  if (refused !== null) {
    return { name, status: "error", message: `it cannot be made in a Worker: ${refused}` };
  }
  if (bytes > PAID_BYTES) {
    return { name, status: "error", message: `${size}: Cloudflare takes no Worker over 10 MiB` };
  }
  if (bytes > FREE_BYTES) {
    const message = `${size}: Cloudflare takes no Worker over 3 MiB on its free plan`;
    return { name, status: "warning", message };
  }
  return { name, status: "ok", message: `it can be made in a Worker: ${size}` };
}

/** Node would end without a word when nothing is left to wait for and the environment still waits. */
async function stuck(): Promise<Validation> {
  await once(process, "beforeExit");
  const message = "a hook, a tool or a reward function never ends: it awaits a promise that nothing settles";
  return unplayed("rollouts", message);
}

function validationText(found: EnvironmentPackage, validation: Validation): string {
  const { checks, policies, examples } = validation;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map(({ name, status, message }) => {
    return `${MARKS[status]} ${name.padEnd(width)}  ${message}`;
  });
  const means = Object.entries(policies).map(([name, { mean, n }]) => {
    return mean === null ? `${name} –` : `${name} ${mean.toFixed(3)} (${n})`;
  });
  const rows = examples === 1 ? "1 row" : `${examples} rows`;
  return [
    `${found.id}@${found.version}, ${rows} played`,
    "",
    ...lines,
    "",
    `mean rewards: ${means.join(", ")}`,
    verdict(validation),
  ].join("\n");
}

function verdict({ checks }: Validation): string {
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const [errors, warnings] = [count("error"), count("warning")];
  if (errors > 0) return `not fit to run: ${errors} of ${checks.length} checks failed`;
  return warnings > 0 ? `fit to run, with ${warnings} to look at` : "fit to run";
}
