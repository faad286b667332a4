/**
 * `npm run simulate`: plays the platform's policies with a virtual clock, for loads that no single machine can play, and
 * prints what each part gets and which limit is reached first. Seeded: the same flags give the same figures, except for
 * the times in "measured on this machine". The figures in docs/operations.md are those without flags.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CASES, DEFAULTS, type Options, play } from "./cases.ts";
import { msOfAsk, secondsOfReport } from "./cpu.ts";
import { measureCalls } from "./measure-calls.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { SHAPE } from "./policies.ts";
import { cpuText, outcomeText, summaryTable } from "./text.ts";

const HELP = `Usage: npm run simulate -- [flags]

      --only NAMES             cases, with commas: ${Object.keys(CASES).join(", ")}; default all
      --seed N                 of the lengths of turns; default 0
      --objects-per-isolate N  how many objects that play rollouts share what an isolate keeps of D1; default 1, the worst
      --databases N            how many D1 databases the deployment has; default ${SHAPE.databases}
      --trajectory-kb N        the size of a trajectory; default 30. Above 32 KiB each is an object of R2
      --whole-replies          the model's server does not stream: 6 rollouts share an object instead of 24
      --json                   print {cases, measured}
      --record                 play small runs on a local platform, count the calls of each event, and write them to
                               bench/simulate/recorded.json
      --help                   show this text
`;

const RECORDED = join(import.meta.dirname, "recorded.json");
const RUNS_OF_ENDPOINT = [100, 250, 500, 1000, 4000];
const ROWS_OF_REPORT = [10_000, 100_000];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(CASES).join(",") },
    seed: { type: "string", default: String(DEFAULTS.seed) },
    "objects-per-isolate": { type: "string", default: String(DEFAULTS.objectsPerIsolate) },
    databases: { type: "string", default: String(SHAPE.databases) },
    "trajectory-kb": { type: "string", default: String(DEFAULTS.trajectoryBytes / 1000) },
    "whole-replies": { type: "boolean", default: DEFAULTS.repliesWhole },
    json: { type: "boolean", default: false },
    record: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function numberOf(flag: "seed" | "objects-per-isolate" | "trajectory-kb" | "databases", least: number): number {
  const value = Number(values[flag]);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`--${flag}: must be a whole number of at least ${least}`);
}

function optionsOf(): Options {
  return {
    seed: numberOf("seed", 0),
    objectsPerIsolate: numberOf("objects-per-isolate", 1),
    trajectoryBytes: 1000 * numberOf("trajectory-kb", 1),
    repliesWhole: values["whole-replies"],
  };
}

async function record(): Promise<void> {
  const calls = await measureCalls((line) => process.stderr.write(`${line}\n`));
  writeFileSync(RECORDED, `${JSON.stringify({ command: "npm run simulate -- --record", calls }, null, 2)}\n`);
  process.stdout.write(`${RECORDED} has the calls of each event.\n`);
}

function simulate(): void {
  const options = optionsOf();
  SHAPE.databases = numberOf("databases", 1);
  const names = values.only.split(",");
  const unknown = names.find((name) => CASES[name] === undefined);
  if (unknown !== undefined) throw new Error(`--only: ${unknown} is not a case: use ${Object.keys(CASES).join(", ")}`);
  const cases: Record<string, Outcome> = {};
  for (const [name, of] of Object.entries(CASES)) {
    if (!names.includes(name)) continue;
    cases[name] = outcomeOf(of, play(of, options));
    if (!values.json) process.stdout.write(`${outcomeText(name, cases[name])}\n\n`);
  }
  const measured = {
    ask_ms: Object.fromEntries(RUNS_OF_ENDPOINT.map((runs) => [runs, msOfAsk(runs, false)])),
    changing_ask_ms: Object.fromEntries(RUNS_OF_ENDPOINT.map((runs) => [runs, msOfAsk(runs, true)])),
    report_s: Object.fromEntries(ROWS_OF_REPORT.map((rows) => [rows, secondsOfReport(rows)])),
  };
  if (values.json) process.stdout.write(`${JSON.stringify({ options, cases, measured }, null, 2)}\n`);
  else process.stdout.write(`${summaryTable(cases)}\n\n${cpuText(measured)}\n`);
}

if (values.help) process.stdout.write(HELP);
else if (values.record) await record();
else simulate();
