/**
 * `npm run bench:verifiers`: the platform against the runner of verifiers 0.3.1 itself, in alternating pairs, with the same
 * scripted model and as many conversations in flight. Needs a Python that has that package. Progress goes to stderr, the
 * rates (or with --json one object) to stdout. The exit code is 0 whatever the numbers.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import * as z from "zod";
import { findCounters } from "./counters.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { checkRequests, runPlatform } from "./pair.ts";
import { startModel, stopAll } from "./processes.ts";
import { median } from "./row.ts";
import { IN_FLIGHT, MODEL, workload } from "./workload.ts";

const HELP = `Usage: npm run bench:verifiers -- --python PATH [flags]

      --python PATH   of an environment with verifiers 0.3.1: python3 -m venv V && V/bin/pip install verifiers==0.3.1
      --rollouts N    of each side; default 1000, of 4 turns
      --pairs P       default 3
      --json          print {machine, versions, row}
`;
const VERSION = "0.3.1";
const RUNNER = join(import.meta.dirname, "verifiers_runner.py");
const WORK = { turns: 4, latency_ms: 0, latency_sigma: 0, state: "memory", way_out: "fetch", kind: "eval" } as const;

const Said = z.object({ version: z.string(), seconds: z.number(), scored: z.int(), turns: z.int() });

/** The rollouts per second of verifiers. Throws unless every rollout was played to its end and scored. */
async function rateOfVerifiers(python: string, rollouts: number): Promise<number> {
  const model = await startModel(WORK.turns);
  const { question } = workload(WORK.turns);
  const args = [RUNNER, model.url, rollouts, WORK.turns, IN_FLIGHT, MODEL, question].map(String);
  const env = { ...process.env, ROLLCALL_BENCH_KEY: "none" };
  const { stdout } = await promisify(execFile)(python, args, { env });
  const said = Said.parse(JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? ""));
  if (said.version !== VERSION) throw new Error(`${python} has verifiers ${said.version}, not ${VERSION}`);
  if (said.scored !== rollouts || said.turns !== rollouts * WORK.turns) {
    throw new Error(`verifiers played something else: ${JSON.stringify(said)}`);
  }
  checkRequests(await model.requests(), { ...WORK, rollouts });
  await model.stop();
  return rollouts / said.seconds;
}

async function measure(python: string, rollouts: number, pairs: number) {
  const rates: { platform: number; verifiers: number }[] = [];
  const counters = findCounters();
  const ofPlatform = async () => rollouts / (await runPlatform({ ...WORK, rollouts }, counters)).seconds;
  for (let index = 0; index < pairs; index += 1) {
    const before = index % 2 === 0 ? await ofPlatform() : null;
    const verifiers = await rateOfVerifiers(python, rollouts);
    const rate = { platform: before ?? (await ofPlatform()), verifiers };
    rates.push(rate);
    process.stderr.write(`pair ${index + 1} of ${pairs}: ${told(rate.platform, verifiers)}\n`);
  }
  const rounded = (value: number, digits: number) => Number(value.toFixed(digits));
  return {
    rollouts,
    ...{ turns: WORK.turns, in_flight: IN_FLIGHT },
    rollouts_per_s: rounded(median(rates.map(({ platform }) => platform)), 1),
    verifiers_rollouts_per_s: rounded(median(rates.map(({ verifiers }) => verifiers)), 1),
    ratio: rounded(median(rates.map(({ platform, verifiers }) => platform / verifiers)), 2),
  };
}

function told(platform: number, verifiers: number): string {
  const times = (platform / verifiers).toFixed(2);
  return `platform ${platform.toFixed(1)}/s, verifiers ${verifiers.toFixed(1)}/s, ${times} ×`;
}

function count(value: string, flag: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${flag}: ${value} is not a whole number of at least 1`);
}

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    python: { type: "string", default: "python3" },
    rollouts: { type: "string", default: "1000" },
    pairs: { type: "string", default: "3" },
    json: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  try {
    const row = await measure(values.python, count(values.rollouts, "rollouts"), count(values.pairs, "pairs"));
    const report = { machine: describeMachine(), versions: { ...describeVersions(), verifiers: VERSION }, row };
    const { rollouts_per_s, verifiers_rollouts_per_s } = row;
    process.stdout.write(`${values.json ? JSON.stringify(report) : told(rollouts_per_s, verifiers_rollouts_per_s)}\n`);
  } finally {
    await stopAll();
  }
}
