/**
 * How a trainer spends its time between its first lease and its last acknowledgement: a step at a time, each from the
 * acknowledgement before it to its own. Pure; times are epoch milliseconds.
 *
 * Invariants. A step is counted once, when it is acknowledged. What the trainer itself says of a step (`wait_s`, `train_s`
 * of its metrics, which may come after the acknowledgement) goes before what the platform saw, and is never more than the
 * step took. Time in which nobody could train is in no step.
 */

/** What was seen of one acknowledged step, kept with its acknowledgement: its metrics may come later. */
export interface StepTime {
  readonly took_ms: number;
  /** From the request for a lease that found no batch to the lease, by the platform's clock. */
  readonly waited_ms: number;
  /** It began with the first lease: what the trainer waited for that was before. */
  readonly first: boolean;
}

export interface TrainerTime {
  /** False where batches are pushed: nobody hears of the trainer while it waits. */
  readonly asks: boolean;
  readonly paused_at: number | null;
  /** Up to here absences are accounted for. */
  readonly left_out_to: number;
  /** Of the step that goes on: the first lease, or the last acknowledgement. Null before the first lease. */
  readonly step_began_at: number | null;
  readonly waiting_since: number | null;
  /** In the step that goes on, by the platform's clock. */
  readonly waited_ms: number;
  readonly steps: number;
  readonly wall_ms: number;
  readonly waiting_ms: number;
  /** Steps whose wait the trainer has told. */
  readonly waits_told: number;
  readonly training_ms: number;
  /** Of the steps whose training the trainer has told. */
  readonly training_wall_ms: number;
}

/** Shares of the time from the first lease to the last acknowledgement, from 0 to 1. Null: nothing is known yet. */
export interface TrainerShares {
  readonly waiting_for_batch: number | null;
  readonly not_training: number | null;
  /** Whose clock `waiting_for_batch` was read from; of the first step there is nothing to wait for. */
  readonly waiting_by: "trainer" | "platform" | "both" | null;
}

type Metrics = Readonly<Record<string, number | null>>;

export const NO_TIME: TrainerTime = {
  asks: true,
  paused_at: null,
  left_out_to: 0,
  step_began_at: null,
  waiting_since: null,
  waited_ms: 0,
  steps: 0,
  wall_ms: 0,
  waiting_ms: 0,
  waits_told: 0,
  training_ms: 0,
  training_wall_ms: 0,
};

/** It waits from now on, unless it does already: for a batch that is not there, or to be offered the next one. */
export function waitingSince(time: TrainerTime, now: number): TrainerTime {
  if (time.step_began_at === null || time.waiting_since !== null) return time;
  return { ...time, waiting_since: now };
}

/** It has a batch, or nothing to wait for any more. */
export function waitEnded(time: TrainerTime, now: number): TrainerTime {
  const waited_ms = time.waited_ms + (now - (time.waiting_since ?? now));
  return { ...time, waiting_since: null, waited_ms };
}

export function leaseBegun(time: TrainerTime, now: number): TrainerTime {
  return { ...waitEnded(time, now), step_began_at: time.step_began_at ?? now };
}

/** Whoever was away, or kept from training, between these two moments was neither at work nor waiting. */
export function leftOut(time: TrainerTime, from: number, to: number): TrainerTime {
  const ms = Math.max(0, to - Math.max(from, time.left_out_to));
  const later = (at: number | null) => (at === null ? null : at + ms);
  const step_began_at = later(time.step_began_at);
  return {
    ...time,
    step_began_at,
    waiting_since: later(time.waiting_since),
    left_out_to: Math.max(to, time.left_out_to),
  };
}

/** The step is acknowledged, and the next one begins. `step` is null where no lease was ever taken. */
export function stepAcked(
  before: TrainerTime,
  metrics: Metrics,
  now: number,
): { time: TrainerTime; step: StepTime | null } {
  const { step_began_at, waited_ms, ...time } = waitEnded(before, now);
  if (step_began_at === null) return { time: before, step: null };
  const took_ms = Math.max(0, now - step_began_at);
  const step = { took_ms, waited_ms: Math.min(took_ms, waited_ms), first: time.steps === 0 };
  const counted = {
    ...time,
    step_began_at: now,
    waited_ms: 0,
    steps: time.steps + 1,
    wall_ms: time.wall_ms + took_ms,
    waiting_ms: time.waiting_ms + step.waited_ms,
  };
  return { time: stepTold(counted, step, metrics), step };
}

/** What the trainer says of a step that is counted already. */
export function stepTold(time: TrainerTime, step: StepTime, metrics: Metrics): TrainerTime {
  const { took_ms, waited_ms, first } = step;
  const waited = first ? null : spanOf(metrics["wait_s"], took_ms);
  const trained = spanOf(metrics["train_s"], took_ms);
  return {
    ...time,
    waiting_ms: time.waiting_ms + (waited === null ? 0 : waited - waited_ms),
    waits_told: time.waits_told + (waited === null ? 0 : 1),
    training_ms: time.training_ms + (trained ?? 0),
    training_wall_ms: time.training_wall_ms + (trained === null ? 0 : took_ms),
  };
}

/** Milliseconds, as far as they fit into the step; null for what is no span of time. */
function spanOf(seconds: number | null | undefined, most: number): number | null {
  if (typeof seconds !== "number" || !(seconds >= 0)) return null;
  return Math.min(most, seconds * 1000);
}

export function sharesOf(time: TrainerTime): TrainerShares {
  const { wall_ms, waiting_ms, training_ms, training_wall_ms } = time;
  const known = wall_ms > 0;
  return {
    waiting_for_batch: known ? waiting_ms / wall_ms : null,
    not_training: training_wall_ms > 0 ? 1 - training_ms / training_wall_ms : null,
    waiting_by: known ? clockOf(time) : null,
  };
}

function clockOf({ steps, waits_told }: TrainerTime): "trainer" | "platform" | "both" {
  if (waits_told === 0) return "platform";
  return waits_told === steps - 1 ? "trainer" : "both";
}
