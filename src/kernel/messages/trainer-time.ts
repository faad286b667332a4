/**
 * How a trainer spends its time between its first lease and its last acknowledgement, one step at a time: a step lasts
 * from the previous acknowledgement to its own. Pure; times are epoch milliseconds.
 *
 * Invariants. A step is counted once, when it is acknowledged. What the trainer reports about a step (`wait_s` and
 * `train_s` in its metrics, which may arrive after the acknowledgement) replaces what the platform measured, and is
 * never more than the step took. Time in which training was impossible is in no step.
 */

/**
 * What was measured of one acknowledged step. It is stored with the acknowledgement, because metrics may come later.
 */
export interface StepTime {
  readonly took_ms: number;
  /** From a lease request that found no batch to the lease, by the platform's clock. */
  readonly waited_ms: number;
  /** The step began with the first lease. What the trainer waited before it is not part of the step. */
  readonly first: boolean;
}

export interface TrainerTime {
  /** False if batches are pushed: then the trainer makes no calls while it waits. */
  readonly asks: boolean;
  readonly paused_at: number | null;
  /** Absences are accounted for up to this time. */
  readonly left_out_to: number;
  /** Start of the current step: the first lease, or the last acknowledgement. Null before the first lease. */
  readonly step_began_at: number | null;
  readonly waiting_since: number | null;
  /** In the current step, by the platform's clock. */
  readonly waited_ms: number;
  readonly steps: number;
  readonly wall_ms: number;
  readonly waiting_ms: number;
  /** Steps whose wait the trainer has reported. */
  readonly waits_told: number;
  readonly training_ms: number;
  /** Duration of the steps whose training time the trainer has reported. */
  readonly training_wall_ms: number;
}

/** Fractions of the time from the first lease to the last acknowledgement, from 0 to 1. Null: not known yet. */
export interface TrainerShares {
  readonly waiting_for_batch: number | null;
  readonly not_training: number | null;
  /** The clock behind `waiting_for_batch`. The first step has no wait. */
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

/** Starts a wait, unless one is running: for a batch that is not ready, or for the next offer. */
export function waitingSince(time: TrainerTime, now: number): TrainerTime {
  if (time.step_began_at === null || time.waiting_since !== null) return time;
  return { ...time, waiting_since: now };
}

/** Ends the wait: the trainer has a batch, or there is nothing to wait for. */
export function waitEnded(time: TrainerTime, now: number): TrainerTime {
  const waited_ms = time.waited_ms + (now - (time.waiting_since ?? now));
  return { ...time, waiting_since: null, waited_ms };
}

export function leaseBegun(time: TrainerTime, now: number): TrainerTime {
  return { ...waitEnded(time, now), step_began_at: time.step_began_at ?? now };
}

/**
 * Excludes a span of time in which the trainer was absent or could not train: it counts as neither work nor waiting.
 */
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

/** The step is acknowledged, and the next one begins. `step` is null if no lease was ever taken. */
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
  return { time: stepReported(counted, step, metrics), step };
}

/** Takes over what the trainer reports about a step that is already counted. */
export function stepReported(time: TrainerTime, step: StepTime, metrics: Metrics): TrainerTime {
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

/** Milliseconds, at most the length of the step; null if the value is not a span of time. */
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
