/** Plays runs with a cap under kills, lost answers and a failing model, and compares them with the models' own log. */
import { setTimeout as pause } from "node:timers/promises";
import { EXIT, type ExitCode } from "../../../src/cli/exit.ts";
import { printJson } from "../../../src/cli/terminal/terminal.ts";
import type { EvalRequestInput } from "../../../src/contract/eval-request.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { Boot } from "../boot.ts";
import { type Desk, openDesk } from "../desk.ts";
import { CALM } from "../knobs.ts";
import { CALL_TIMEOUT_MS, MAX_RETRIES } from "../limits.ts";
import { strike } from "../strike.ts";
import { type BilledModel, startBilledModel } from "./billed-model.ts";
import { bookedMicros, type CapAccount, capViolations } from "./check.ts";
import { type CapPlan, capPlanOf, JUDGE_PRICES, POLICY_PRICES } from "./plan.ts";

const LOOK_EVERY_MS = 20;
const ASK_EVERY_MS = 500;
/** After this time without a request, the moment of a kill will not come any more. */
const NOTHING_ASKED_MS = 20_000;

interface Stage {
  readonly port: number;
  readonly endsWithinMs: number;
}

export async function playCapPlans(
  seeds: readonly number[],
  rollouts: number,
  stage: Stage,
  json: boolean,
): Promise<ExitCode> {
  const plans: object[] = [];
  let failed = 0;
  for (const seed of seeds) {
    const from = performance.now();
    const account = await playCapPlan(capPlanOf(seed, rollouts), stage);
    const violations = capViolations(account);
    failed += violations.length > 0 ? 1 : 0;
    plans.push({ ...figuresOf(account), violations });
    const line = lineOf(account, violations.length === 0, (performance.now() - from) / 1000);
    (json ? process.stderr : process.stdout).write(`${line}\n`);
    for (const { rule, detail } of violations) process.stderr.write(`  ${rule}: ${detail}\n`);
  }
  if (json) printJson({ plans, failed });
  return failed === 0 ? EXIT.good : EXIT.bad;
}

function figuresOf(account: CapAccount) {
  const { plan, run, policy, judge, kills, most_open } = account;
  return {
    ...{ seed: plan.seed, rollouts: plan.rollouts, kills, most_open, max_cost_micros: plan.max_cost_micros },
    ...{ booked_micros: bookedMicros(account), counted_micros: run.report.counted_micros ?? null },
    ...{ lost: run.report.usage.lost ?? null, calls: policy.calls, judge_calls: judge.calls },
    ...{ calls_again: policy.again + judge.again, counts: run.counts },
  };
}

function lineOf(account: CapAccount, holds: boolean, seconds: number): string {
  const { seed, rollouts, kills, most_open, max_cost_micros, booked_micros, counted_micros, lost } = figuresOf(account);
  const share = (micros: number | null) => `${Math.round((100 * (micros ?? 0)) / max_cost_micros)} %`;
  const { scored, cancelled, pending } = account.run.counts;
  const ended = `${scored} scored, ${cancelled["budget"] ?? 0} cancelled, ${pending} never begun`;
  const money = `cap ${max_cost_micros}: ${share(booked_micros)} by the book, ${share(counted_micros)} counted`;
  const said = `${holds ? "ok" : "VIOLATED"} seed ${seed}: ${rollouts} rollouts (${most_open} calls at once), ${kills} kills`;
  return `${said}; ${money}; ${lost?.calls ?? 0} calls lost; ${ended}; ${seconds.toFixed(0)} s`;
}

async function playCapPlan(plan: CapPlan, { port, endsWithinMs }: Stage): Promise<CapAccount> {
  const [model, judge] = [await startBilledModel(plan), await startBilledModel(plan)];
  const desk = await openDesk({ ...CALM, ...plan.queues, lose_reply: plan.lost_replies });
  const boot = new Boot(port, `${desk.url}/knobs`);
  try {
    await boot.start();
    const { id } = await clientOf(boot).runs.create(requestOf(plan, model, judge, desk));
    const kills = await killAll(plan, boot, model, judge);
    // A message lost from here on only costs its timeout, and shows nothing about money.
    desk.turn({ drop: 0, lose_reply: 0 });
    const run = await ended(clientOf(boot), id, endsWithinMs);
    const audit = await clientOf(boot).runs.audit(id);
    return { plan, run, audit, policy: model.book, judge: judge.book, kills, most_open: model.mostOpen() };
  } catch (error) {
    process.stderr.write(`seed ${plan.seed}: what the platform said last\n${boot.lastWords()}\n`);
    throw error;
  } finally {
    await boot.end();
    await Promise.all([model.stop(), judge.stop(), desk.stop()]);
  }
}

function requestOf(plan: CapPlan, model: BilledModel, judge: BilledModel, desk: Desk): EvalRequestInput {
  const { rollouts, max_concurrent, max_cost_micros, max_tokens, seed } = plan;
  const endpoint = { base_url: judge.url, prices: JUDGE_PRICES };
  return {
    environment: "errands",
    environment_args: { desk: desk.url, judged: true },
    judges: { default: { endpoint, model: "billed-judge", sampling: { max_tokens } } },
    judge_cache: false,
    model: "billed-model",
    endpoint: { base_url: model.url, prices: POLICY_PRICES },
    sampling: { max_tokens },
    ...{ num_examples: rollouts, rollouts_per_example: 1, max_concurrent, max_cost_micros, seed, min_scored: 0 },
    limits: { call_timeout_s: CALL_TIMEOUT_MS / 1000, max_retries: Math.min(3, MAX_RETRIES) },
  };
}

/** How many kills happened while calls were in flight. */
async function killAll(plan: CapPlan, boot: Boot, model: BilledModel, judge: BilledModel): Promise<number> {
  let struck = 0;
  for (const { victim, at } of plan.kills) {
    if (!(await come(model, () => model.times.length >= at * plan.rollouts && model.open() > 0))) break;
    const { served } = boot;
    if (served === null) break;
    const target = { served, directory: boot.directory, serveAgain: boot.start, model, silent: [judge] };
    const hit = await strike(victim, { ...target, in_flight: model.open(), goes_on: false });
    boot.served = hit.served;
    struck += 1;
  }
  return struck;
}

/** False: the model gets no more requests. */
async function come(model: BilledModel, condition: () => boolean): Promise<boolean> {
  const from = Date.now();
  while (!condition()) {
    if (Date.now() - Math.max(from, model.times.at(-1) ?? from) > NOTHING_ASKED_MS) return false;
    await pause(LOOK_EVERY_MS);
  }
  return true;
}

function clientOf({ served }: Boot): RollcallClient {
  if (served === null) throw new Error("the platform was never started");
  return new RollcallClient({ baseUrl: served.url, apiKey: served.key, project: "default" });
}

async function ended(rollcall: RollcallClient, id: string, withinMs: number) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const run = await rollcall.runs.get(id);
    if (run.finished_at !== null || Date.now() > deadline) return run;
    await pause(ASK_EVERY_MS);
  }
}
