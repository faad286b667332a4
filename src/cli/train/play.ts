/**
 * Plays a training from its first eval to its last.
 *
 * Invariants: the trainer's process has always ended before this returns. If the command is interrupted or loses its
 * trainer, the run is paused: no rollouts are dispatched, and finished ones are kept. The eval after the training
 * starts once the last weights are served.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { howItEnded, type TrainerProcess } from "@rollcall/trainer/trainer-process";
import type { RunView } from "../../contract/run.ts";
import type { StepMetrics, TrainingView } from "../../contract/training-view.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import type { Connection } from "../connect.ts";
import { CommandError, interruption, unreachable } from "../exit.ts";
import { hasEnded, ifUp } from "../follow.ts";
import { type Ends, firstOf } from "../interrupt.ts";
import { pageLink, pathOf } from "../page-link.ts";
import { tracked } from "../tracker.ts";
import { type Begun, checkpointOf, evaluate, type TrainingContext, trainingOf } from "./begin.ts";
import { TrainingDisplay, type TrainingProgress } from "./picture.ts";

/** A cancelled run ends once the calls in flight are aborted; this is more than enough. */
const CANCELLED_WITHIN_MS = 30_000;
/** A user's own trainer may never send its last weights. */
const LAST_WEIGHTS_WITHIN_MS = 60_000;
/** A local platform restarts within seconds after workerd dies. */
const SILENT_FOR_MS = 60_000;
const LOOK_EVERY_MS = 500;

export interface TrainingOutcome {
  readonly run: RunView;
  readonly training: TrainingView;
  readonly series: readonly StepMetrics[];
  readonly before: RunView | null;
  /** Null if none was requested, or if the run did not complete. */
  readonly after: RunView | null;
  readonly seconds: number;
}

/** Where a training happens, its trainer, what ends it early, and the command that resumes it, without `--resume`. */
export interface Training extends Omit<TrainingContext, "signal"> {
  readonly ends: Ends;
  readonly again: string;
}

/** `process`: null for a user's own trainer. `begin` creates the run, or finds it. */
export async function playTraining(
  training: Training,
  process: TrainerProcess | null,
  begin: (context: TrainingContext) => Promise<Begun>,
): Promise<TrainingOutcome> {
  const { ends, connection, term } = training;
  const started = performance.now();
  const over = new AbortController();
  const context = { ...training, signal: AbortSignal.any([over.signal, firstOf(ends)]) };
  const outcome = (played: Played) => ({ ...played, seconds: (performance.now() - started) / 1000 });
  let begun: Begun | null = null;
  const play = async () => {
    begun = await begin(context);
    return await playBegun(begun, context, process);
  };
  try {
    const broken = process === null ? [] : [brokenTrainer(process)];
    return outcome(await Promise.race([play(), brokenPlatform(connection), ...broken]));
  } catch (error) {
    over.abort();
    await process?.stop();
    if (begun === null) throw ends.interrupt.aborted ? interruption() : error;
    if (ends.timeout?.aborted && !ends.interrupt.aborted) return outcome(await cancelTraining(begun, context));
    throw await withTheWayOn(error, begun, training);
  } finally {
    over.abort();
    await process?.stop();
    term.settle();
  }
}

type Played = Omit<TrainingOutcome, "seconds">;

async function playBegun(
  { run, before, evaluation, token }: Begun,
  context: TrainingContext & Training,
  process: TrainerProcess | null,
): Promise<Played> {
  const { connection, term, signal, again } = context;
  term.log(`Run ${run.id} on ${connection.url}`);
  await printWhereToWatch(run, context);
  if (process === null) introduceTrainer(run, token, context);
  else if (token !== null) {
    process.train({ run_id: run.id, token, checkpoint: checkpointOf(connection, run.id) });
  }
  const display = new TrainingDisplay(term, () => performance.now(), before?.report.reward.mean ?? null);
  // The eval after the training does not wait for the tracker.
  const play = async () => {
    const progress = await followTraining(connection.client, run.id, { signal, onProgress: (it) => display.show(it) });
    display.end();
    if (progress.run.status !== "completed") return { ...progress, before, after: null };
    const training = await lastWeights(progress, context, process);
    const metadata = { training_run: run.id };
    const after = evaluation && (await evaluate("after", evaluation, metadata, context));
    return { ...progress, training, before, after };
  };
  const following = { log: term.log, signal, command: again };
  return await tracked(context.tracker ?? null, run.id, connection, following, play);
}

/** Only on a terminal: elsewhere the code in the link would be stored in a log. */
async function printWhereToWatch({ id }: RunView, { connection, term, signal }: TrainingContext): Promise<void> {
  if (!term.live) return;
  const { url } = await pageLink(connection.client, pathOf(id), { signal });
  term.log(`Watch it: ${url}`);
}

/** Prints what a user's own trainer needs to begin. */
function introduceTrainer(run: RunView, token: string | null, { connection, term }: TrainingContext): void {
  const { url } = connection;
  const secret = token === null ? "with the token it has" : `with the token ${token}`;
  term.log(`Trainer: ${url}/v1/runs/${run.id}/trainer/register, ${secret} (docs/training.md)`);
}

/** The state of the training once the last version is served, as far as the trainer reports it. */
async function lastWeights(
  { run, training }: TrainingProgress,
  { connection, term, signal }: TrainingContext,
  process: TrainerProcess | null,
): Promise<TrainingView> {
  // The trainer ends after it has sent its last weights.
  await process?.exited;
  const { steps_trained } = training;
  const until = performance.now() + (process === null ? LAST_WEIGHTS_WITHIN_MS : 0);
  for (;;) {
    const now = trainingOf(await connection.client.runs.get(run.id, { signal }));
    if (servedOf(now) >= steps_trained) return now;
    if (performance.now() >= until) {
      term.log(`The last weights are not served: the eval after training uses version ${servedOf(now)}.`);
      return now;
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** The lowest version that the replicas serve; without replicas, the published version. */
function servedOf({ applied, published }: TrainingView): number {
  return Object.keys(applied.by_replica).length === 0 ? published : applied.min;
}

async function brokenPlatform({ lost }: Connection): Promise<never> {
  throw unreachable("the platform has stopped", await lost);
}

/** Never settles if the trainer ends without an error. */
function brokenTrainer({ exited }: TrainerProcess): Promise<never> {
  return new Promise((_, reject) => {
    exited.then((exit) => {
      if (exit.code !== 0) reject(unreachable(`the trainer ${howItEnded(exit)}`, undefined));
    }, reject);
  });
}

async function cancelTraining({ run, before }: Begun, context: TrainingContext): Promise<Played> {
  const { client } = context.connection;
  context.term.log("Timeout: cancelling the run.");
  await client.runs.cancel(run.id);
  const signal = AbortSignal.timeout(CANCELLED_WITHIN_MS);
  const progress = await followTraining(client, run.id, { signal, onProgress: () => undefined });
  return { ...progress, before, after: null };
}

/** Pauses a run that has lost its trainer, and says how to resume it. Sends nothing to a platform that is gone. */
async function withTheWayOn(error: unknown, { run }: Begun, training: Training): Promise<unknown> {
  const { connection, trainer, ends } = training;
  const { client } = connection;
  const now = await client.runs.get(run.id).catch(() => run);
  if (trainer.kind === "embedded" && !hasEnded(now)) await client.runs.pause(run.id).catch(() => now);
  const goOn = howToGoOn(run, connection, training.again);
  if (ends.interrupt.aborted) return interruption(`; ${goOn}`);
  if (!(error instanceof CommandError)) return error;
  return new CommandError(error.exit, { ...error.failure, message: `${error.message}; ${goOn}` });
}

function howToGoOn(run: RunView, { kind, flags, environment }: Connection, command: string): string {
  // A platform that is booted again needs the code of the environment again; a running one has it.
  const own = environment?.own && kind === "embedded" ? ` ${environment.reference}` : "";
  const again = `${command}${own} --resume ${run.id}`;
  switch (kind) {
    case "remote":
      return `run ${run.id} continues; follow it with: ${again}${flags}`;
    case "running":
    case "embedded":
      return `run ${run.id} is saved; continue it with: ${again}`;
    case "ephemeral":
      return `run ${run.id} was deleted with its temporary platform`;
  }
}

/**
 * Follows a training run to its end, and returns how it ended. Reads the run twice a second. Its event stream would
 * report the end of every rollout, hundreds a second, and none of them is shown. The last `onProgress` has the ended
 * run. Throws the signal's reason when it is aborted; the run then continues.
 */
async function followTraining(
  client: RollcallClient,
  runId: string,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (progress: TrainingProgress) => void },
): Promise<TrainingProgress> {
  const steps = new Map<number, StepMetrics>();
  let trained = 0;
  for (let lastEventAt = performance.now(); ; await sleep(LOOK_EVERY_MS, undefined, { signal })) {
    const read = await ifUp(() => readTraining(client, runId, trained));
    if (read === null) {
      if (performance.now() - lastEventAt < SILENT_FOR_MS) continue;
      throw unreachable("the platform no longer answers", undefined);
    }
    lastEventAt = performance.now();
    for (const step of read.steps) steps.set(step.step, step);
    // The numbers of a step do not change after the trainer has acknowledged it.
    trained = read.training.steps_trained;
    const series = [...steps.values()].sort((a, b) => a.step - b.step);
    const progress = { run: read.run, training: read.training, series };
    onProgress(progress);
    if (hasEnded(read.run)) return progress;
  }
}

async function readTraining(client: RollcallClient, runId: string, trained: number) {
  const run = await client.runs.get(runId);
  const steps: StepMetrics[] = [];
  for (let after = trained; ; ) {
    const page = await client.runs.metrics(runId, { after_step: after });
    steps.push(...page.data);
    const last = page.data.at(-1);
    if (!page.has_more || last === undefined) return { run, steps, training: trainingOf(run) };
    after = last.step;
  }
}
