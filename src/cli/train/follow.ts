/**
 * Follows a training run to its end.
 *
 * It is looked at twice a second. Its event stream would tell the end of every rollout, hundreds a second, of which
 * nothing is shown.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { RunView } from "../../contract/run.ts";
import type { StepMetrics, TrainingView } from "../../contract/training-view.ts";
import type { RollcallClient } from "../../sdk/client.ts";
import { unreachable, usageError } from "../exit.ts";
import { hasEnded, ifUp } from "../follow.ts";

const READ_EVERY_MS = 500;
/** A platform on this machine is back within seconds after workerd died. */
const SILENT_FOR_MS = 60_000;

export interface TrainingProgress {
  readonly run: RunView;
  readonly training: TrainingView;
  /** Every step so far, in order. */
  readonly series: readonly StepMetrics[];
}

interface FollowOptions {
  readonly signal: AbortSignal;
  /** Called with the ended run last. */
  readonly onProgress: (progress: TrainingProgress) => void;
}

/** How it ended. Throws the signal's reason when aborted; the run goes on then. */
export async function followTraining(
  client: RollcallClient,
  runId: string,
  { signal, onProgress }: FollowOptions,
): Promise<TrainingProgress> {
  const steps = new Map<number, StepMetrics>();
  let trained = 0;
  for (let heard = performance.now(); ; await sleep(READ_EVERY_MS, undefined, { signal })) {
    const read = await ifUp(() => readTraining(client, runId, trained));
    if (read === null) {
      if (performance.now() - heard < SILENT_FOR_MS) continue;
      throw unreachable("the platform does not answer any more", undefined);
    }
    heard = performance.now();
    for (const step of read.steps) steps.set(step.step, step);
    // A step that the trainer has acknowledged gets no numbers any more.
    trained = read.training.steps_trained;
    const series = [...steps.values()].sort((a, b) => a.step - b.step);
    const progress = { run: read.run, training: read.training, series };
    onProgress(progress);
    if (hasEnded(read.run)) return progress;
  }
}

async function readTraining(client: RollcallClient, runId: string, trained: number) {
  const run = await client.getRun(runId);
  const steps: StepMetrics[] = [];
  for (let after = trained; ; ) {
    const page = await client.runMetrics(runId, { after_step: after });
    steps.push(...page.data);
    const last = page.data.at(-1);
    if (!page.has_more || last === undefined) return { run, steps, training: trainingOf(run) };
    after = last.step;
  }
}

/** Throws where the run is an eval. */
export function trainingOf(run: RunView): TrainingView {
  if (run.training !== null) return run.training;
  throw usageError(`${run.id} is an eval; go on with it by: rollcall eval --resume ${run.id}`);
}
