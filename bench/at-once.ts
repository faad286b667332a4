/**
 * `npm run bench:at-once`: plays a run with thousands of rollouts in flight at the same time on a local platform, and
 * simulates a run of the same shape. Prints the memory of a rollout in flight, and how many requests each part of the
 * platform got, next to the simulation's figures. Exits with 1 if one of these differs by more than a fifth. Linux only.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";
import { bootPlatform } from "../src/local/platform.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { type Compared, type Counts, compare, requestsIn, requestsOf } from "./at-once/counted.ts";
import { type Shape, startHeldModel } from "./at-once/held-model.ts";
import { simulateAtOnce } from "./at-once/simulated.ts";
import { describeMachine } from "./machine.ts";
import { openFiles } from "./measure.ts";
import { MODEL } from "./workload.ts";

const HELP = `Usage: npm run bench:at-once -- [flags]

      --rollouts N  at once; default 5000
      --turns T     of each rollout, at most 4; default 2
      --turn-s S    mean time of a turn after all are in flight; default 30
      --json        print {machine, shape, memory, counts}
      --help        show this text
`;

const MOST_TURNS = 4;
/** As counts are compared: the ratio to the simulation. */
const TOLERANCE = 0.2;
/** They load the code, and show that the endpoint streams. */
const FIRST_ROLLOUTS = 48;

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "5000" },
    turns: { type: "string", default: "2" },
    "turn-s": { type: "string", default: "30" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function wholeNumber(flag: "rollouts" | "turns" | "turn-s", most: number): number {
  const value = Number(values[flag]);
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return value;
  throw new Error(`--${flag}: must be a whole number from 1 to ${most}`);
}

interface Memory {
  /** MiB of workerd before the run, and with all rollouts in flight. */
  readonly before_mib: number;
  readonly at_once_mib: number;
  readonly kib_per_rollout: number;
  readonly open_files: number;
}

interface Played {
  readonly counts: Counts;
  readonly memory: Memory;
  readonly seconds: { readonly until_all_in_flight: number; readonly in_all: number };
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function play(shape: Shape): Promise<Played> {
  const platform = await bootPlatform({
    directory: null,
    log,
    // The ceiling counts five open files for each rollout. Those of this run are alike, and need fewer.
    bindings: { LIVE_OBJECT_CEILING: 0 },
    worker: {
      entry: join(import.meta.dirname, "simulate/counting-worker.ts"),
      folder: join(import.meta.dirname, "../dist/counting"),
    },
  });
  const model = await startHeldModel(shape);
  try {
    const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
    const first = await startHeldModel({ ...shape, rollouts: FIRST_ROLLOUTS, turnMs: 1 });
    first.letGo();
    await finish(client, first.url, { ...shape, rollouts: FIRST_ROLLOUTS }, () => undefined);
    await settled(platform.url, {});
    await first.stop();
    const [before, idleMib] = [await countsOf(platform.url), residentMib(platform.workerdPid())];
    const from = performance.now();
    let memory: Memory | null = null;
    let filled = 0;
    const watching = setInterval(() => log(`${model.arrived()} turns have begun`), 10_000);
    const measured = model.allInFlight.then(() => {
      filled = performance.now() - from;
      const [atOnce, pid] = [residentMib(platform.workerdPid()), platform.workerdPid()];
      const kib = (1024 * (atOnce - idleMib)) / shape.rollouts;
      memory = { before_mib: idleMib, at_once_mib: atOnce, kib_per_rollout: kib, open_files: openFiles(pid) };
      log(`${shape.rollouts} rollouts are in flight after ${(filled / 1000).toFixed(1)} s`);
      model.letGo();
    });
    try {
      await finish(client, model.url, shape, () => undefined);
      await measured;
      const counts = await settled(platform.url, before);
      if (memory === null) throw new Error("the memory was not measured");
      const seconds = { until_all_in_flight: filled / 1000, in_all: (performance.now() - from) / 1000 };
      return { counts, memory, seconds };
    } finally {
      clearInterval(watching);
    }
  } finally {
    await model.stop();
    await platform.stop();
  }
}

/** Plays the run to its end, and follows it. */
async function finish(client: RollcallClient, url: string, { rollouts }: Shape, begun: () => void): Promise<void> {
  const dataset = Array.from({ length: rollouts }, (_, at) => ({ question: `What is ${at} * 1?`, answer: "48" }));
  const { id } = await client.runs.create({
    ...{ environment: "calculator", dataset, num_examples: rollouts, max_concurrent: rollouts },
    ...{ model: MODEL, endpoint: { base_url: url } },
  });
  begun();
  for await (const _event of client.runs.events(id));
  const { counts } = await client.runs.get(id);
  if (counts.scored !== rollouts) throw new Error(`${counts.scored} of ${rollouts} rollouts are scored`);
}

/** The counts since `before`, when all messages are handled. */
async function settled(url: string, before: Counts): Promise<Counts> {
  for (;;) {
    const all = await countsOf(url);
    const sumOf = (name: RegExp) =>
      Object.entries(all).reduce((sum, [key, count]) => (name.test(key) ? sum + count : sum), 0);
    if (sumOf(/> queue \S+ messages$/) <= sumOf(/^consumer \S+ > run\.folded$|^consumer (rollout-\S+) messages$/)) {
      return Object.fromEntries(Object.entries(all).map(([name, count]) => [name, count - (before[name] ?? 0)]));
    }
  }
}

async function countsOf(url: string): Promise<Counts> {
  return z.record(z.string(), z.number()).parse(await (await fetch(`${url}/counts`)).json());
}

function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

function tableOf(rows: readonly Compared[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [
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
  const { counts: counted, memory, seconds } = await play(shape);
  const counts = compare(requestsOf(counted), requestsIn(simulateAtOnce(shape)));
  const far = counts.filter(({ ratio }) => ratio !== null && Math.abs(ratio - 1) > TOLERANCE);
  if (values.json) {
    const report = { machine: describeMachine(), shape, memory, seconds, counts, counted };
    process.stdout.write(`${JSON.stringify(report, null, 1)}\n`);
  } else {
    const { before_mib, at_once_mib, kib_per_rollout, open_files } = memory;
    process.stdout.write(
      `${shape.rollouts} rollouts of ${shape.turns} turns were in flight at once after ` +
        `${seconds.until_all_in_flight.toFixed(0)} s, and ended after ${seconds.in_all.toFixed(0)} s.\n` +
        `workerd: ${before_mib.toFixed(0)} MiB before, ${at_once_mib.toFixed(0)} MiB with all in flight: ` +
        `${kib_per_rollout.toFixed(0)} KiB a rollout. ${open_files} open files.\n\n${tableOf(counts)}\n`,
    );
  }
  if (far.length === 0) return;
  log(`Off by more than ${100 * TOLERANCE} %: ${far.map(({ what }) => what).join(", ")}`);
  process.exitCode = 1;
}

if (values.help) process.stdout.write(HELP);
else await main();
