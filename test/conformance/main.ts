/**
 * `npm run conformance`: checks recorded behaviours of verifiers against the core, in Node, in workerd, or in both.
 * With --json, prints one object to stdout. Exits with 1 unless every vector holds, every kind has a driver and the
 * file's counts are right.
 */
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode, interruption, usageError } from "../../src/cli/exit.ts";
import { printJson } from "../../src/cli/terminal/terminal.ts";
import { DRIVERS } from "./drivers.ts";
import { runInWorkerd } from "./in-workerd.ts";
import { readVectors, vectorsPath } from "./read-vectors.ts";
import { holds, type Runtime, reportOf, textOf } from "./report.ts";
import { runVectors, type Verdict } from "./run-vectors.ts";
import { faultsOf, type Vector } from "./vector-file.ts";

const HELP = `Usage: npm run conformance -- [flags]

Drives recorded behaviours of the Python library verifiers against the core and counts, by kind, how many hold.

      --file PATH            vectors to run; default $CONFORMANCE, else the ones that ship
      --in node|workerd|both where; default both, and a vector must hold in each
      --json                 print {file, kinds, passed, total, failures, faults}
      --timeout S            give up after this many seconds
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  file: { type: "string" },
  in: { type: "string", default: "both" },
  timeout: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

const RUN: Readonly<Record<Runtime, (vectors: readonly Vector[]) => Promise<Verdict[]>>> = {
  node: runVectors,
  workerd: runInWorkerd,
};

async function conformance(args: string[]): Promise<ExitCode> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return EXIT.good;
  }
  const runtimes = runtimesOf(values.in);
  if (values.timeout !== undefined) endAfter(values.timeout, values.json);
  const path = values.file ?? vectorsPath();
  const file = await readVectors(path).catch((thrown: unknown) => {
    throw usageError(thrown instanceof Error ? thrown.message : String(thrown), "file");
  });
  const verdicts = new Map<Runtime, Verdict[]>();
  for (const runtime of runtimes) verdicts.set(runtime, await RUN[runtime](file.vectors));
  const report = reportOf(path, file, verdicts, faultsOf(file, new Set(DRIVERS.keys())));
  if (values.json) printJson(report);
  else process.stdout.write(`${textOf(report)}\n`);
  return holds(report) ? EXIT.good : EXIT.bad;
}

function runtimesOf(where: string): readonly Runtime[] {
  if (where === "both") return ["node", "workerd"];
  if (where === "node" || where === "workerd") return [where];
  throw usageError(`--in: ${where} is none of node, workerd, both`, "in");
}

/** Ends the process with a timer outside the work, so that the limit holds even if the work hangs. */
function endAfter(text: string, json: boolean): void {
  const seconds = Number(text);
  if (!(seconds > 0)) throw usageError(`--timeout: ${text} is not a number of seconds`, "timeout");
  const late = new Error(`not done within ${seconds} s`);
  setTimeout(() => fail(late, json), seconds * 1000).unref();
}

function fail(thrown: unknown, json: boolean): never {
  const error = asCommandError(thrown);
  process.stderr.write(`conformance: ${error.message}\n`);
  if (json) printJson({ error: error.failure });
  process.exit(error.exit);
}

const argv = process.argv.slice(2);
const json = argv.includes("--json");
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => fail(interruption(), json));
}
try {
  process.exitCode = await conformance(argv);
} catch (thrown) {
  fail(thrown, json);
}
