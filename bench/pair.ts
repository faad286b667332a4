/**
 * Runs both sides one after the other on the same work, each with a new model and new processes, and checks every
 * result. A number that was measured on wrong work is worthless, so any mismatch ends the benchmark.
 */
import type { RunView } from "../src/contract/run.ts";
import { type Counters, type Counts, startCounting } from "./counters.ts";
import { Meter, type Usage } from "./measure.ts";
import { playEval, playTraining, type Size } from "./play.ts";
import { type Place, startBaseline, startModel, startPlatform, type WayOut } from "./processes.ts";

export interface Case extends Size {
  readonly latency_ms: number;
  /** Above 0, latencies are lognormal with this σ and the median `latency_ms`. */
  readonly latency_sigma: number;
  readonly state: Place;
  readonly way_out: WayOut;
  /** The same conversations as an eval, or as the rollouts of a training run. */
  readonly kind: "eval" | "training";
}

export interface Side {
  readonly seconds: number;
  readonly usage: Usage;
  /** The counts of workerd, or of the bare loop. */
  readonly counts: Counts;
  readonly promptTokens: number;
}

export interface Pair {
  readonly platform: Side;
  readonly baseline: Side;
}

/** Both sides must send the model the same requests; ids differ in length by a few characters. */
const PROMPT_TOLERANCE = 0.05;

/** `platformFirst` alternates from pair to pair, so that a machine that gets warm or busy favours neither side. */
export async function runPair(work: Case, counters: Counters, platformFirst: boolean): Promise<Pair> {
  const platformBefore = platformFirst ? await runPlatform(work, counters) : null;
  const baseline = await runBaseline(work, counters);
  const platform = platformBefore ?? (await runPlatform(work, counters));
  const apart = Math.abs(platform.promptTokens / baseline.promptTokens - 1);
  if (work.kind === "eval" && apart > PROMPT_TOLERANCE) {
    const sent = `${platform.promptTokens} and ${baseline.promptTokens} prompt tokens`;
    throw new Error(`the two sides sent different requests: ${sent}`);
  }
  return { platform, baseline };
}

/** Without the boot. */
export async function runPlatform(work: Case, counters: Counters): Promise<Side> {
  await using model = disposed(await startModel(work.turns, work.latency_ms, work.latency_sigma));
  await using platform = disposed(await startPlatform(work.state, work.way_out));
  const pids = { workerd: platform.workerdPid, platform: platform.pid, model: model.pid };
  const play = work.kind === "eval" ? playEval : playTraining;
  const measured = await measure(pids, platform.workerdPid, counters, () => play(platform, model.url, work));
  const { run } = measured;
  checkRun(run, work);
  // A training run plays some rollouts more than it trains on, and first checks whether the model returns tokens.
  if (work.kind === "eval") checkRequests(await model.requests(), work);
  return { ...measured, promptTokens: run.report.usage.prompt_tokens };
}

async function runBaseline(work: Case, counters: Counters): Promise<Side> {
  await using model = disposed(await startModel(work.turns, work.latency_ms, work.latency_sigma));
  await using baseline = disposed(await startBaseline(model.url, work.rollouts, work.turns));
  const pids = { baseline: baseline.pid, model: model.pid };
  const measured = await measure(pids, baseline.pid, counters, () => baseline.run());
  checkRequests(await model.requests(), work);
  return { ...measured, promptTokens: measured.prompt_tokens };
}

async function measure<T>(
  pids: Readonly<Record<string, number>>,
  counted: number,
  counters: Counters,
  work: () => Promise<T>,
): Promise<T & Pick<Side, "usage" | "counts">> {
  const counting = await startCounting(counters, counted);
  const meter = new Meter(pids);
  try {
    const done = await work();
    const usage = meter.stop();
    return { ...done, usage, counts: await counting.stop() };
  } finally {
    meter.cancel();
  }
}

function checkRun(run: RunView, { rollouts, turns, kind }: Case): void {
  const { calls, turns: played } = run.report;
  const { scored } = run.counts;
  const whole = kind === "training" ? scored >= rollouts : scored === rollouts && calls === rollouts * turns;
  if (run.status === "completed" && whole && played === calls) return;
  const found = JSON.stringify({ status: run.status, error: run.error, counts: run.counts, calls });
  throw new Error(`the run is not ${rollouts} scored rollouts of ${turns} turns: ${found}`);
}

export function checkRequests(requests: number, { rollouts, turns }: Case): void {
  if (requests === rollouts * turns) return;
  throw new Error(`the model saw ${requests} requests, not ${rollouts * turns}`);
}

function disposed<Process extends { stop(): Promise<void> }>(process_: Process) {
  return { ...process_, [Symbol.asyncDispose]: () => process_.stop() };
}
