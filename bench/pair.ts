/**
 * One side after the other on the same work, each with a fresh model and fresh processes, and every result checked: a
 * number measured on wrong work is worth nothing, so whatever does not add up ends the benchmark.
 */
import type { RunView } from "../src/contract/run.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { Meter, type Usage } from "./measure.ts";
import { type BenchedPlatform, startBaseline, startModel, startPlatform } from "./processes.ts";
import { IN_FLIGHT, MODEL, workload } from "./workload.ts";

export interface Case {
  readonly rollouts: number;
  readonly turns: number;
  readonly latency_ms: number;
}

export interface Side {
  readonly seconds: number;
  readonly usage: Usage;
  readonly promptTokens: number;
}

export interface Pair {
  readonly platform: Side;
  readonly baseline: Side;
}

/** Both sides must send the model the same requests; ids differ in length by a few characters. */
const PROMPT_TOLERANCE = 0.05;

/** `platformFirst` alternates from pair to pair, so that a machine growing warm or busy favours neither. */
export async function runPair(work: Case, platformFirst: boolean): Promise<Pair> {
  const platformBefore = platformFirst ? await runPlatform(work) : null;
  const baseline = await runBaseline(work);
  const platform = platformBefore ?? (await runPlatform(work));
  const apart = Math.abs(platform.promptTokens / baseline.promptTokens - 1);
  if (apart > PROMPT_TOLERANCE) {
    const sent = `${platform.promptTokens} and ${baseline.promptTokens} prompt tokens`;
    throw new Error(`the two sides sent different requests: ${sent}`);
  }
  return { platform, baseline };
}

/** From the POST that creates the run to its end as a client sees it; the boot is not in it. */
async function runPlatform(work: Case): Promise<Side> {
  await using model = disposed(await startModel(work.turns, work.latency_ms));
  await using platform = disposed(await startPlatform());
  const pids = { workerd: platform.workerdPid, platform: platform.pid, model: model.pid };
  const meter = new Meter(pids);
  try {
    const { run, seconds } = await playRun(platform, model.url, work);
    const usage = meter.stop();
    checkRun(run, work);
    checkRequests(await model.requests(), work);
    return { seconds, usage, promptTokens: run.report.usage.prompt_tokens };
  } finally {
    meter.cancel();
  }
}

async function runBaseline(work: Case): Promise<Side> {
  await using model = disposed(await startModel(work.turns, work.latency_ms));
  await using baseline = disposed(await startBaseline(model.url, work.rollouts, work.turns));
  const meter = new Meter({ baseline: baseline.pid, model: model.pid });
  try {
    const { seconds, prompt_tokens } = await baseline.run();
    const usage = meter.stop();
    checkRequests(await model.requests(), work);
    return { seconds, usage, promptTokens: prompt_tokens };
  } finally {
    meter.cancel();
  }
}

export async function playRun(platform: Pick<BenchedPlatform, "url" | "key">, modelUrl: string, work: Case) {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const started = performance.now();
  const { id } = await client.createRun({
    ...workload(work.turns).environment,
    model: MODEL,
    endpoint: { base_url: modelUrl },
    num_examples: work.rollouts,
    max_concurrent: IN_FLIGHT,
  });
  // The stream ends with the run: watching it is one request, where polling would be hundreds.
  for await (const _event of client.events(id));
  const seconds = (performance.now() - started) / 1000;
  return { run: await client.getRun(id), seconds };
}

function checkRun(run: RunView, { rollouts, turns }: Case): void {
  const { calls, turns: played } = run.report;
  const calm = calls === rollouts * turns && played === calls;
  if (run.status === "completed" && run.counts.scored === rollouts && calm) return;
  const found = JSON.stringify({ status: run.status, error: run.error, counts: run.counts, calls });
  throw new Error(`the run is not ${rollouts} scored rollouts of ${turns} turns: ${found}`);
}

function checkRequests(requests: number, { rollouts, turns }: Case): void {
  if (requests === rollouts * turns) return;
  throw new Error(`the model saw ${requests} requests, not ${rollouts * turns}`);
}

function disposed<Process extends { stop(): Promise<void> }>(process_: Process) {
  return { ...process_, [Symbol.asyncDispose]: () => process_.stop() };
}
