/**
 * `npm run bench`: the platform with every durable write on, against a bare loop around the SDK. Progress goes to
 * stderr, the table (or with --json one object) to stdout. The exit code is 0 whatever the numbers, except with
 * --check.
 */
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode, usageError } from "../src/cli/exit.ts";
import { printJson } from "../src/cli/terminal/terminal.ts";
import { compare, readRecorded, record } from "./check.ts";
import { type Counters, findCounters } from "./counters.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { type Case, type Pair, runPair } from "./pair.ts";
import { BATCH_ROLLOUTS } from "./play.ts";
import { stopAll } from "./processes.ts";
import { type Row, rowOf } from "./row.ts";
import { benchTable, latencyOf } from "./table.ts";

const HELP = `Usage: npm run bench -- [flags]

Rollouts per second of the local platform against a plain loop around the openai SDK, in alternating pairs, both with
100 conversations in flight and the same scripted model. Linux only; perf, where it is installed, counts instructions
and fsyncs. Without flags, at 0 ms: five pairs of 1,000 rollouts of 4 turns, one by the local way out, one with the
state on a disk, one of a training run's rollouts, one of 10,000; and one of 1,000 at 200~0.5 ms. About five minutes on
two cores.

      --rollouts N,…    sizes of the run
      --latency MS,…    of the model's answer; 200~0.5: lognormal, median 200, σ 0.5
      --state P,…       where the state is kept: memory (default), disk
      --way-out W,…     how calls leave: fetch, as deployed (default), or binding, the shorter way that is local only
      --kind K,…        whose rollouts: eval (default), training
      --turns T         default 4
      --pairs P         of each combination; default 1, and 5 for the first row when nothing else is given
      --check           the first row alone, against the ratio to the bare loop in bench/recorded.json: exit 1 when
                        it is more than 5 % worse, 5 when nothing comparable is recorded
      --record          the first row alone, whose ratio is kept there
      --timeout S       give up after this many seconds
      --json            print {machine, versions, rows}; with --check also {check}
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  rollouts: { type: "string" },
  turns: { type: "string", default: "4" },
  latency: { type: "string" },
  state: { type: "string" },
  "way-out": { type: "string" },
  kind: { type: "string" },
  pairs: { type: "string" },
  check: { type: "boolean", default: false },
  record: { type: "boolean", default: false },
  timeout: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

interface Plan {
  readonly work: Case;
  readonly pairs: number;
}

interface Flags {
  readonly rollouts?: string | undefined;
  readonly latency?: string | undefined;
  readonly state?: string | undefined;
  readonly "way-out"?: string | undefined;
  readonly kind?: string | undefined;
  readonly pairs?: string | undefined;
  readonly turns: string;
  readonly check: boolean;
  readonly record: boolean;
}

async function bench(argv: readonly string[]): Promise<ExitCode> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return EXIT.good;
  }
  const plans = plansOf(values);
  if (process.platform !== "linux") throw new Error("the bench reads /proc: it runs on Linux only");
  endAfter(values.timeout, values.json);
  const machine = describeMachine();
  const counters = findCounters();
  if (counters.lacking !== null) log(counters.lacking);
  const rows: Row[] = [];
  for (const plan of plans) rows.push(await runPlan(plan, counters));
  const [first] = rows;
  const check = values.check && first !== undefined ? compare(first, readRecorded(), machine.cpu) : null;
  if (values.record && first !== undefined) record(first, machine.cpu, new Date());
  if (values.json) printJson({ machine, versions: describeVersions(), rows, ...(check !== null && { check }) });
  else process.stdout.write(`${benchTable(machine, rows, new Date())}\n`);
  if (check !== null) log(check.summary);
  return check?.exit ?? EXIT.good;
}

const PLAIN = { latency_ms: 0, latency_sigma: 0, state: "memory", way_out: "fetch", kind: "eval" } as const;

function plansOf(flags: Flags): Plan[] {
  const turns = number(flags.turns, "turns");
  const pairs = flags.pairs === undefined ? undefined : number(flags.pairs, "pairs");
  const chosen = [flags.rollouts, flags.latency, flags.state, flags["way-out"], flags.kind].some(
    (flag) => flag !== undefined,
  );
  if ((flags.check && flags.record) || (chosen && (flags.check || flags.record))) {
    throw usageError("--check and --record exclude each other, and flags that choose rows");
  }
  if (!chosen) return plansWithout(turns, pairs, flags);
  const sizes = numbers(flags.rollouts ?? "1000", "rollouts", 1);
  const latencies = (flags.latency ?? "0").split(",").map(latencyIn);
  const states = choices(flags.state ?? "memory", "state", ["memory", "disk"] as const);
  const kinds = choices(flags.kind ?? "eval", "kind", ["eval", "training"] as const);
  const ways = choices(flags["way-out"] ?? "fetch", "way-out", ["fetch", "binding"] as const);
  const places = states.flatMap((state) => ways.flatMap((way_out) => kinds.map((kind) => ({ state, way_out, kind }))));
  const works = places.flatMap((place) =>
    sizes.flatMap((rollouts) => latencies.map((latency) => ({ rollouts, turns, ...latency, ...place }))),
  );
  if (works.some(({ kind, rollouts }) => kind === "training" && rollouts % BATCH_ROLLOUTS !== 0)) {
    throw usageError(`--rollouts: a training run has a multiple of ${BATCH_ROLLOUTS}`, "rollouts");
  }
  return works.map((work) => ({ work, pairs: pairs ?? 1 }));
}

/** The rows of docs/performance.md; only the first for a check. */
function plansWithout(turns: number, pairs: number | undefined, { check, record }: Flags): Plan[] {
  const work = { ...PLAIN, rollouts: 1000, turns };
  const first = { work, pairs: pairs ?? 5 };
  if (check || record) return [first];
  return [
    first,
    { work: { ...work, way_out: "binding" }, pairs: 1 },
    { work: { ...work, state: "disk" }, pairs: 1 },
    { work: { ...work, latency_ms: 200, latency_sigma: 0.5 }, pairs: 1 },
    { work: { ...work, kind: "training" }, pairs: 1 },
    { work: { ...work, rollouts: 10_000 }, pairs: 1 },
  ];
}

/** `200`, or `200~0.5`: the median and σ of a lognormal. */
function latencyIn(text: string): Pick<Case, "latency_ms" | "latency_sigma"> {
  const [median = "", sigma, ...more] = text.split("~");
  const latency_sigma = Number(sigma ?? 0);
  if (more.length > 0 || sigma?.trim() === "" || !(latency_sigma >= 0 && latency_sigma <= 3)) {
    throw usageError(`--latency: ${text} is neither milliseconds nor a median and a σ of at most 3`, "latency");
  }
  const [latency_ms = 0] = numbers(median, "latency", 0);
  return { latency_ms, latency_sigma };
}

function choices<T extends string>(text: string, flag: string, known: readonly T[]): T[] {
  return text.split(",").map((part) => {
    const found = known.find((one) => one === part);
    if (found !== undefined) return found;
    throw usageError(`--${flag}: ${part} is none of ${known.join(", ")}`, flag);
  });
}

function number(text: string, flag: string): number {
  const [value = 0, ...more] = numbers(text, flag, 1);
  if (more.length > 0) throw usageError(`--${flag} takes one number`, flag);
  return value;
}

function numbers(text: string, flag: string, least: number): number[] {
  return text.split(",").map((part) => {
    const value = Number(part);
    if (part.trim() !== "" && Number.isInteger(value) && value >= least) return value;
    throw usageError(`--${flag}: ${part} is not a whole number of at least ${least}`, flag);
  });
}

async function runPlan({ work, pairs }: Plan, counters: Counters): Promise<Row> {
  const done: Pair[] = [];
  for (let index = 0; index < pairs; index += 1) {
    const pair = await runPair(work, counters, index % 2 === 0);
    done.push(pair);
    const { rollouts, turns, kind, state, way_out } = work;
    const rate = ({ seconds }: { seconds: number }) => (rollouts / seconds).toFixed(1);
    log(
      `${rollouts} × ${turns} (${kind}, ${state}, ${way_out}) at ${latencyOf(work)}, pair ${index + 1} of ${pairs}: ` +
        `platform ${rate(pair.platform)}/s, baseline ${rate(pair.baseline)}/s, ` +
        `ratio ${(pair.baseline.seconds / pair.platform.seconds).toFixed(3)}`,
    );
  }
  return rowOf(work, done);
}

/**
 * Ends the process with a timer outside the work, so that the limit holds even if the work hangs. The children end with
 * it.
 */
function endAfter(timeout: string | undefined, json: boolean): void {
  if (timeout === undefined) return;
  const seconds = Number(timeout);
  if (!(seconds > 0)) throw usageError(`--timeout: ${timeout} is not a number of seconds`, "timeout");
  const late = new Error(`not done within ${seconds} s`);
  setTimeout(() => void fail(late, json), seconds * 1000).unref();
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function fail(thrown: unknown, json: boolean): Promise<void> {
  const error = asCommandError(thrown);
  await end(error.exit, () => {
    log(`bench: ${error.message}`);
    if (json) printJson({ error: error.failure });
  });
}

let ending = false;

/** Only the first end counts: ending the children makes the work that waits for them fail as well. */
async function end(exit: ExitCode, report: () => void): Promise<void> {
  if (ending) return;
  ending = true;
  await stopAll();
  report();
  process.exit(exit);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void end(EXIT.interrupted, () => log("bench: interrupted")));
}
const argv = process.argv.slice(2);
try {
  const exit = await bench(argv);
  await end(exit, () => undefined);
} catch (thrown) {
  await fail(thrown, argv.includes("--json"));
}
