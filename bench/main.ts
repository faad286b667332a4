/**
 * `npm run bench`: the platform with every durable write on, against a bare loop around the SDK. Progress goes to
 * stderr, the table (or with --json one object) to stdout. The exit code is 0 whatever the numbers.
 */
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode, usageError } from "../src/cli/exit.ts";
import { printJson } from "../src/cli/terminal/terminal.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { type Case, type Pair, runPair } from "./pair.ts";
import { stopAll } from "./processes.ts";
import { type Row, rowOf } from "./row.ts";
import { benchTable } from "./table.ts";

const HELP = `Usage: npm run bench -- [flags]

Rollouts per second of the local platform against a plain loop around the openai SDK, in alternating pairs, both with
100 conversations in flight and the same scripted model. Linux only. Without flags: five pairs of 1,000 rollouts of 4
turns at 0 ms, one at 200 ms, and one of 10,000 at 0 ms; about three minutes on two cores.

      --rollouts N,…    sizes of the run
      --latency MS,…    of the model's answer
      --turns T         default 4
      --pairs P         of each combination; default 1, and 5 for the first row when nothing else is given
      --timeout S       give up after this many seconds
      --json            print {machine, versions, rows}
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  rollouts: { type: "string" },
  turns: { type: "string", default: "4" },
  latency: { type: "string" },
  pairs: { type: "string" },
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
  readonly pairs?: string | undefined;
  readonly turns: string;
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
  const rows: Row[] = [];
  for (const plan of plans) rows.push(await runPlan(plan));
  if (values.json) printJson({ machine, versions: describeVersions(), rows });
  else process.stdout.write(`${benchTable(machine, rows, new Date())}\n`);
  return EXIT.good;
}

function plansOf(flags: Flags): Plan[] {
  const [turns = 0, ...more] = numbers(flags.turns, "turns", 1);
  if (more.length > 0) throw usageError("--turns takes one number", "turns");
  const pairs = flags.pairs === undefined ? undefined : numbers(flags.pairs, "pairs", 1)[0];
  if (flags.rollouts === undefined && flags.latency === undefined) {
    return [
      { work: { rollouts: 1000, turns, latency_ms: 0 }, pairs: pairs ?? 5 },
      { work: { rollouts: 1000, turns, latency_ms: 200 }, pairs: 1 },
      { work: { rollouts: 10_000, turns, latency_ms: 0 }, pairs: 1 },
    ];
  }
  const sizes = numbers(flags.rollouts ?? "1000", "rollouts", 1);
  const latencies = numbers(flags.latency ?? "0", "latency", 0);
  return sizes.flatMap((rollouts) =>
    latencies.map((latency_ms) => ({ work: { rollouts, turns, latency_ms }, pairs: pairs ?? 1 })),
  );
}

function numbers(text: string, flag: string, least: number): number[] {
  return text.split(",").map((part) => {
    const value = Number(part);
    if (part.trim() !== "" && Number.isInteger(value) && value >= least) return value;
    throw usageError(`--${flag}: ${part} is not a whole number of at least ${least}`, flag);
  });
}

async function runPlan({ work, pairs }: Plan): Promise<Row> {
  const done: Pair[] = [];
  for (let index = 0; index < pairs; index += 1) {
    const pair = await runPair(work, index % 2 === 0);
    done.push(pair);
    const { rollouts, turns, latency_ms } = work;
    const rate = ({ seconds }: { seconds: number }) => (rollouts / seconds).toFixed(1);
    say(
      `${rollouts} × ${turns} at ${latency_ms} ms, pair ${index + 1} of ${pairs}: ` +
        `platform ${rate(pair.platform)}/s, baseline ${rate(pair.baseline)}/s, ` +
        `ratio ${(pair.baseline.seconds / pair.platform.seconds).toFixed(3)}`,
    );
  }
  return rowOf(work, done);
}

/** Ends the process from outside the work: whatever hangs, the limit holds. The children end with it. */
function endAfter(timeout: string | undefined, json: boolean): void {
  if (timeout === undefined) return;
  const seconds = Number(timeout);
  if (!(seconds > 0)) throw usageError(`--timeout: ${timeout} is no number of seconds`, "timeout");
  const late = new Error(`not done within ${seconds} s`);
  setTimeout(() => void fail(late, json), seconds * 1000).unref();
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function fail(thrown: unknown, json: boolean): Promise<void> {
  const error = asCommandError(thrown);
  await end(error.exit, () => {
    say(`bench: ${error.message}`);
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
  process.once(signal, () => void end(EXIT.interrupted, () => say("bench: interrupted")));
}
const argv = process.argv.slice(2);
try {
  const exit = await bench(argv);
  await end(exit, () => undefined);
} catch (thrown) {
  await fail(thrown, argv.includes("--json"));
}
