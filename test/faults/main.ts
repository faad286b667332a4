/**
 * `npm run faults`: plays seeded plans of kills, lost and doubled messages, failing stores and a failing model against
 * the real platform, and compares each with a calm run of the same seed. Lines go to stdout; with --json they go to
 * stderr, and one object to stdout. Exits with 1 if a plan is violated.
 */
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode, interruption, usageError } from "../../src/cli/exit.ts";
import { printJson } from "../../src/cli/terminal/terminal.ts";
import { NETWORK_BINDING } from "../../src/local/miniflare.ts";
import { Boot, endBoots } from "./boot.ts";
import { MOST_TURNS } from "./fault-model.ts";
import { bundleFaultWorker } from "./fault-worker.ts";
import { playCapPlans } from "./max-cost/play.ts";
import { type FaultPlan, placedAgain, planOf, sabotaged } from "./plan.ts";
import { type PlanReport, planLine, reportOf } from "./plan-report.ts";
import { playPlan, type Stage } from "./play-plan.ts";
import { playTrainingPlans } from "./training/plans.ts";

/** How often one plan is played, with its kills moved. */
const MOST_PLAYED = 3;

const HELP = `Usage: npm run faults -- [flags]

Plays seeded fault plans against the real platform: kill -9 of node, workerd and both, queues that lose, double and
reorder, stores and a model that fail. Plan i has seed S + i - 1; a seed that failed is played alone with --seed.

      --plans N         how many plans; default 5
      --seed S          of the first plan; default 1
      --plan K          only the K-th of them
      --rollouts R      of each plan; default 120
      --turns T         of every rollout, 1 to 6; default as the model has it
      --tenants N       so many organisations share the platform, each with a run of its own; default 1
      --judges          every plan asks judges; else one in six
      --billing         their organisations pay for them, and the ledger is checked after each
      --isolated        their environments are published, and play in isolates of their own, which get lost, too
      --gathered        their runs have gatherers, as runs with more than 5,000 rollouts at once have
      --databases N     so many D1 databases, with the organisations outside of the first; default 1
      --max-cost        runs with a cap of their own, held to the models' own book of tokens
      --training        plans of training runs: their trainers die and go back to earlier weights, too
      --no-network-binding  calls leave by fetch, as in a deployment
      --sabotage        drop every message and switch reconciliation off: every plan must fail
      --ends-within S   seconds a run may take once its faults are over; default 240
      --port P          the first of the ports tried; default 22800
      --timeout S       give up after this many seconds
      --json            print {plans, failed}
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  plans: { type: "string", default: "5" },
  seed: { type: "string", default: "1" },
  plan: { type: "string" },
  rollouts: { type: "string", default: "120" },
  turns: { type: "string" },
  judges: { type: "boolean" },
  tenants: { type: "string", default: "1" },
  databases: { type: "string", default: "1" },
  billing: { type: "boolean", default: false },
  isolated: { type: "boolean", default: false },
  gathered: { type: "boolean", default: false },
  training: { type: "boolean", default: false },
  "max-cost": { type: "boolean", default: false },
  "no-network-binding": { type: "boolean", default: false },
  sabotage: { type: "boolean", default: false },
  "ends-within": { type: "string", default: "240" },
  port: { type: "string", default: "22800" },
  timeout: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

async function faults(argv: readonly string[]): Promise<ExitCode> {
  const { values } = parseArgs({ args: [...argv], options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return EXIT.good;
  }
  const whole = (flag: "plans" | "tenants" | "databases" | "seed" | "rollouts" | "ends-within" | "port") =>
    wholeNumber(values[flag], flag, flag === "seed" ? 0 : 1);
  const [count, first, rollouts, port] = [whole("plans"), whole("seed"), whole("rollouts"), whole("port")];
  const seeds = seedsOf(count, first, values.plan);
  const shape = {
    turns: turnsOf(values.turns),
    judged: values.judges,
    billing: values.billing,
    isolated: values.isolated,
    gathered: values.gathered,
    databases: whole("databases"),
  };
  const tenants = whole("tenants");
  const endsWithinMs = whole("ends-within") * 1000;
  if (values.timeout !== undefined) endAfter(wholeNumber(values.timeout, "timeout", 1), values.json);
  // For every platform that is booted from here.
  if (values["no-network-binding"]) process.env[NETWORK_BINDING] = "off";
  await bundleFaultWorker();
  const others = otherPlans(seeds, rollouts, { port: port + 10, endsWithinMs }, values);
  if (others !== null) return await others;
  const calm = await new Boot(port, "").start();
  const stage = { calm, port: port + 10, endsWithinMs };
  const plans: PlanReport[] = [];
  for (const seed of seeds) {
    const from = performance.now();
    const plan = planOf(seed, rollouts, shape);
    for (const report of await play(values.sabotage ? sabotaged(plan) : plan, stage, tenants)) {
      plans.push(report);
      const line = planLine(report, (performance.now() - from) / 1000);
      (values.json ? process.stderr : process.stdout).write(`${line}\n`);
    }
  }
  const failed = plans.filter(({ ok }) => !ok).length;
  if (values.json) printJson({ plans, failed });
  return failed === 0 ? EXIT.good : EXIT.bad;
}

/** Plans of another kind, if they were requested. */
function otherPlans(
  seeds: readonly number[],
  rollouts: number,
  stage: { readonly port: number; readonly endsWithinMs: number },
  { training, json, "max-cost": capped }: { training: boolean; json: boolean; "max-cost": boolean },
): Promise<ExitCode> | null {
  if (training) return playTrainingPlans(seeds, stage, json);
  return capped ? playCapPlans(seeds, rollouts, stage, json) : null;
}

/** Plays a plan again as long as a kill hit nothing in flight, each time with that kill earlier. */
async function play(plan: FaultPlan, stage: Stage, tenants: number): Promise<PlanReport[]> {
  const reports: PlanReport[] = [];
  let next: FaultPlan | null = plan;
  for (let played = 0; next !== null && played < MOST_PLAYED; played += 1) {
    const [own, ...others] = (await playPlan(next, stage, tenants)).map(reportOf);
    if (own === undefined) break;
    reports.push(own, ...others);
    next = placedAgain(next, own.in_flight_at_kill);
  }
  return reports;
}

function turnsOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const turns = wholeNumber(text, "turns", 1);
  if (turns > MOST_TURNS) throw usageError(`--turns: at most ${MOST_TURNS}`, "turns");
  return turns;
}

function seedsOf(count: number, first: number, only: string | undefined): number[] {
  const seeds = Array.from({ length: count }, (_, index) => first + index);
  if (only === undefined) return seeds;
  const plan = wholeNumber(only, "plan", 1);
  if (plan > count) throw usageError(`--plan: there are ${count} plans`, "plan");
  return seeds.slice(plan - 1, plan);
}

function wholeNumber(text: string, flag: string, least: number): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= least) return value;
  throw usageError(`--${flag}: ${text} is not a whole number of at least ${least}`, flag);
}

/** Ends the process with a timer outside the work, so that the limit holds even if the work hangs. */
function endAfter(seconds: number, json: boolean): void {
  const late = new Error(`not done within ${seconds} s`);
  setTimeout(() => void fail(late, json), seconds * 1000).unref();
}

async function fail(thrown: unknown, json: boolean): Promise<void> {
  const error = asCommandError(thrown);
  process.stderr.write(`faults: ${error.message}\n`);
  if (json) printJson({ error: error.failure });
  await end(error.exit);
}

async function end(exit: ExitCode): Promise<void> {
  await endBoots();
  process.exit(exit);
}

const argv = process.argv.slice(2);
const json = argv.includes("--json");
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void fail(interruption(), json));
}
try {
  await end(await faults(argv));
} catch (thrown) {
  await fail(thrown, json);
}
