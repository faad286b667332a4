/**
 * `rollcall env validate`: plays an environment with simple policies in this process, creates it once in workerd, and
 * reports what is wrong with it. It uses no platform and no endpoint.
 */
import { Console } from "node:console";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import type { Need } from "../../core/environments/contract.ts";
import { codeOf, type OwnCapabilities } from "../../core/protocol/in-process.ts";
import type { Stage } from "../../core/validation/plays.ts";
import type { GoldPolicy } from "../../core/validation/policies.ts";
import {
  type Check,
  resultOf,
  unplayed,
  type Validation,
  validateEnvironment,
} from "../../core/validation/validate.ts";
import {
  type EnvironmentPackage,
  environmentPackage,
  NoEnvironmentPackage,
  resolveEnvironmentPackage,
} from "../../local/environment-package.ts";
import type { EnvironmentModule } from "../../local/import-environment.ts";
import { loadEnvironmentModule } from "../../local/load-environment.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import type { Tried } from "../../local/try-in-workerd.ts";
import { WORKER_BYTES } from "../../local/worker-bytes.ts";
import { environmentArgs } from "../argument-values.ts";
import type { CommandLine } from "../command-line.ts";
import { readAllRows } from "../dataset-argument.ts";
import { CommandError, EXIT, type ExitCode, usageError } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { validationLines } from "../terminal/validation.ts";

const EXAMPLES = 20;

interface Request {
  readonly args: Record<string, unknown>;
  readonly examples: number;
  /** A file of rows. */
  readonly dataset: string | undefined;
}

export async function validateCommand(line: CommandLine<"json" | "args" | "examples" | "dataset">): Promise<ExitCode> {
  const term = terminal(line.on("json"));
  const request = {
    args: environmentArgs(line.all("args")),
    examples: line.count("examples", 1) ?? EXAMPLES,
    dataset: line.text("dataset"),
  };
  const found = locate(line.one("one environment"));
  // The output of an environment must not mix with the one object of --json.
  globalThis.console = new Console(process.stderr);
  const played = await Promise.race([validate(found, request), whenStuck()]);
  const validation = await inWorkerd(found, request, played);
  term.print(validationText(found, validation));
  if (line.on("json")) {
    printJson({ environment: found.id, version: found.version, ...validation });
  }
  return EXITS[validation.result];
}

const EXITS = { ready: EXIT.good, faulty: EXIT.bad, unchecked: EXIT.inconclusive } as const;

async function validate(found: EnvironmentPackage, request: Request): Promise<Validation> {
  let made: Made;
  try {
    made = await makeTwice(found, request.args);
  } catch (thrown) {
    if (thrown instanceof CommandError) throw thrown;
    const fault = thrown instanceof Error ? thrown.message : String(thrown);
    return unplayed("build", `it cannot be built: ${fault}`);
  }
  const { environment, secondInstance, goldPolicy } = made;
  const [code, second] = [codeOf(environment, CAPABILITIES), codeOf(secondInstance, CAPABILITIES)];
  return validateEnvironment(
    { code, secondInstance: second, goldPolicy, openSqlite, later: onAnotherDay },
    {
      examples: request.examples,
      uploaded: await uploadedRows(found, environment, request.dataset),
      unmet: unmetNeeds(environment.needs),
    },
  );
}

/** The same result, with the errors of workerd: Node has features that a Worker does not have. */
async function inWorkerd(found: EnvironmentPackage, { args }: Request, played: Validation): Promise<Validation> {
  // If the environment cannot be created here, the result already has that error.
  if (played.checks.some(({ name }) => name === "build")) return played;
  const { tryInWorkerd } = await import("../../local/try-in-workerd.ts");
  const check = checkWorkerd(await tryInWorkerd(found, args));
  const checks = [...played.checks, check];
  return { ...played, checks, ...resultOf(checks) };
}

function checkWorkerd({ refused, bytes }: Tried): Check {
  const name = "workerd";
  const size = `${(bytes / 1000).toFixed(0)} kB gzipped with what it imports`;
  if (refused !== null) {
    return { name, status: "error", message: `it cannot be built in a Worker: ${refused}` };
  }
  if (bytes > WORKER_BYTES.paid) {
    return { name, status: "error", message: `${size}: Cloudflare's limit for a Worker is 10 MiB` };
  }
  if (bytes > WORKER_BYTES.free) {
    const message = `${size}: Cloudflare's limit for a Worker on the free plan is 3 MiB`;
    return { name, status: "warning", message };
  }
  return { name, status: "ok", message: `it can be built in a Worker: ${size}` };
}

/** Node would exit without a message if the environment waits and the event loop is empty. */
async function whenStuck(): Promise<Validation> {
  await once(process, "beforeExit");
  const message = "a hook, a tool or a reward function never ends: it awaits a promise that never settles";
  return unplayed("rollouts", message);
}

function validationText(found: EnvironmentPackage, validation: Validation): string {
  const { checks, policies, examples, judgements } = validation;
  const rows = examples === 1 ? "1 row" : `${examples} rows`;
  return [
    `${found.id}@${found.version}, ${rows} played`,
    "",
    validationLines(checks, policies, judgements),
    conclusion(validation),
  ].join("\n");
}

function conclusion({ checks, result }: Validation): string {
  const named = (status: Check["status"]) => checks.filter((check) => check.status === status).map(({ name }) => name);
  if (result === "faulty") return `not ready to run: ${named("error").length} of ${checks.length} checks failed`;
  if (result === "unchecked") return `not fully checked: ${named("unchecked").join(", ")}`;
  const warnings = named("warning").length;
  return warnings > 0 ? `ready to run, with ${warnings} warnings` : "ready to run";
}

/** A folder, one of Rollcall's own environments, or an installed package. Throws a usage error. */
export function locate(reference: string): EnvironmentPackage {
  const own = join(PACKAGE_ROOT, "environments", reference);
  try {
    return /^[\w-]+$/.test(reference) && existsSync(join(own, "package.json"))
      ? environmentPackage(own)
      : resolveEnvironmentPackage(reference, process.cwd());
  } catch (thrown) {
    throw asUsageError(thrown);
  }
}

interface Made extends Pick<Stage, "goldPolicy"> {
  readonly environment: AnyEnvironment;
  readonly secondInstance: AnyEnvironment;
}

/**
 * Creates the environment twice. Each time its module is loaded again, the second time as if on another day. A value
 * that a module or an instance keeps, draws at random or reads from the clock then differs between the two. Throws a
 * usage error for arguments that do not fit, and any error that the environment throws.
 */
async function makeTwice(found: EnvironmentPackage, args: unknown): Promise<Made> {
  const module = await load(found);
  return {
    environment: await build(module, args),
    secondInstance: await onAnotherDay(async () => build(await load(found), args)),
    goldPolicy: goldPolicyOf(module),
  };
}

/**
 * The rows for a dataset that has none of its own: from the file, or else from examples.jsonl in the environment's
 * folder.
 */
export async function uploadedRows(
  found: EnvironmentPackage,
  environment: AnyEnvironment,
  file: string | undefined,
): Promise<readonly unknown[]> {
  if (environment.dataset.kind !== "uploaded") {
    if (file === undefined) return [];
    throw usageError(`--dataset: ${found.id} has rows of its own`, "dataset");
  }
  const beside = join(found.folder, "examples.jsonl");
  if (file !== undefined) return await readAllRows(file);
  if (existsSync(beside)) return await readAllRows(beside);
  throw usageError(`${found.id} has no rows of its own: add --dataset`, "dataset");
}

/** The capabilities of this process; secrets are environment variables of the same names. */
const CAPABILITIES: OwnCapabilities = {
  fetch: async (url, init) => {
    const response = await fetch(url, init);
    const { status, headers } = response;
    return { status, headers, text: () => response.text() };
  },
  secret: (name) => process.env[name] ?? "",
};

/** Every play gets a database of its own. */
const openSqlite = () => new DatabaseSync(":memory:");

/** A sentence for each need that this process does not meet. */
export function unmetNeeds(needs: readonly Need[]): string[] {
  return needs.flatMap((need) => {
    const secret = /^secret:(.+)$/.exec(need)?.[1];
    if (secret === undefined || process.env[secret]) return [];
    return `${need} is read from the environment variable ${secret}, which is not set`;
  });
}

async function load(found: EnvironmentPackage): Promise<EnvironmentModule> {
  try {
    return await loadEnvironmentModule(found);
  } catch (thrown) {
    throw asUsageError(thrown);
  }
}

async function build({ loadEnvironment }: EnvironmentModule, args: unknown) {
  const checked = loadEnvironment.args.safeParse(args);
  if (!checked.success) throw usageError(`--args: ${z.prettifyError(checked.error)}`, "args");
  return await loadEnvironment.load(args);
}

function goldPolicyOf({ exports }: EnvironmentModule): GoldPolicy | null {
  const policy = exports["goldPolicy"];
  if (policy === undefined) return null;
  if (isGoldPolicy(policy)) return policy;
  throw usageError("goldPolicy must be a function of a task that returns replies, or a model");
}

/** Its return value is checked when it is played. */
function isGoldPolicy(policy: unknown): policy is GoldPolicy {
  return typeof policy === "function";
}

/** The error to throw instead. */
function asUsageError(thrown: unknown): unknown {
  return thrown instanceof NoEnvironmentPackage ? usageError(thrown.message) : thrown;
}

/** Changes the year, month, hour, minute and second. */
const SHIFT_MS = (400 * 24 * 3600 + 3661) * 1000;

/**
 * Runs code as if on another day, so that anything it computes from the date differs, even if it reads only the year.
 * The clock of the whole process is shifted until the promise settles.
 */
export async function onAnotherDay<T>(run: () => Promise<T>): Promise<T> {
  const real = Date;
  const now = () => real.now() + SHIFT_MS;
  globalThis.Date = new Proxy(real, {
    apply: () => new real(now()).toString(),
    construct: (target, given, newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  try {
    return await run();
  } finally {
    globalThis.Date = real;
  }
}
