/**
 * `npm run bench:at-once`: plays a run with thousands of rollouts in flight at the same time on a local platform, and
 * simulates a run of the same shape. Prints the memory of a rollout in flight, and how many requests each part of the
 * platform got, next to the simulation's figures. Exits with 1 if one of these differs too much. Linux only.
 */
import { parseArgs } from "node:util";
import { type Compared, compare, msOfReports, msOfSettings, requestsIn, requestsOf } from "./at-once/counted.ts";
import { type Played, play } from "./at-once/play.ts";
import type { Shape } from "./at-once/shape.ts";
import { simulateAtOnce } from "./at-once/simulated.ts";
import { describeMachine } from "./machine.ts";

const HELP = `Usage: npm run bench:at-once -- [flags]

      --rollouts N  at once; default 5000
      --turns T     of each rollout, at most 4; default 2
      --turn-s S    mean time of a turn after all are in flight; default 60
      --json        print {machine, shape, memory, seconds, counts, counted}
      --help        show this text
`;

const MOST_TURNS = 4;

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "5000" },
    turns: { type: "string", default: "2" },
    "turn-s": { type: "string", default: "60" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function wholeNumber(flag: "rollouts" | "turns" | "turn-s", most: number): number {
  const value = Number(values[flag]);
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw new Error(`--${flag}: must be a whole number from 1 to ${most}`);
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

function textOf({ rollouts, turns }: Shape, { memory, seconds }: Played, rows: readonly Compared[]): string {
  const { before_mib, at_once_mib, kib_per_rollout, open_files } = memory;
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [
    `${rollouts} rollouts of ${turns} turns were in flight at once after ${seconds.until_all_in_flight.toFixed(0)} s, ` +
      `and the run took ${seconds.in_all.toFixed(0)} s.`,
    `workerd: ${before_mib.toFixed(0)} MiB before, ${at_once_mib.toFixed(0)} MiB with all in flight, which is ` +
      `${kib_per_rollout.toFixed(0)} KiB a rollout; ${open_files} open files.`,
    "",
    line(["what", "played", "simulated", "played / simulated"]),
    line(["---", "---", "---", "---"]),
    ...rows.map(({ what, played, simulated, ratio }) => line([what, played, simulated, ratio?.toFixed(2) ?? "–"])),
  ].join("\n");
}

async function main(): Promise<void> {
  const shape = {
    rollouts: wholeNumber("rollouts", 10_000),
    turns: wholeNumber("turns", MOST_TURNS),
    turnMs: 1000 * wholeNumber("turn-s", 600),
  };
  const played = await play(shape, log);
  const { counts: counted, ...measured } = played;
  const { until_all_in_flight, in_all } = measured.seconds;
  const pace = {
    filledAfterMs: 1000 * until_all_in_flight,
    endedAfterMs: 1000 * (in_all - until_all_in_flight),
    d1Ms: msOfSettings(counted),
    reportMs: msOfReports(counted),
  };
  const counts = compare(requestsOf(counted), requestsIn(simulateAtOnce(shape, pace)));
  if (values.json) {
    const report = { machine: describeMachine(), shape, ...measured, counts, counted };
    process.stdout.write(`${JSON.stringify(report, null, 1)}\n`);
  } else process.stdout.write(`${textOf(shape, played, counts)}\n`);
  const far = counts.filter(({ agrees }) => !agrees);
  if (far.length === 0) return;
  log(`The simulation is wrong about: ${far.map(({ what }) => what).join(", ")}`);
  process.exitCode = 1;
}

if (values.help) process.stdout.write(HELP);
else await main();
