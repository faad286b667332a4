/**
 * When a run must next look at itself: pure, so that every case is a test.
 * A settled run with nothing left to write costs nothing but the alarm that frees its rollouts.
 */
export interface RunClock {
  readonly now: number;
  /** When the first silent rollout or unit is to be asked; null when nothing is in flight. */
  readonly askAt: number | null;
  /** Finished rollouts that D1 does not have yet. */
  readonly undrained: number;
  readonly lastDrainAt: number;
  /** Drains that failed in a row. */
  readonly drainFailures: number;
  /** True when the run's own row in D1 is behind. */
  readonly rowStale: boolean;
  /** Rollouts that must still be told to stop. */
  readonly untold: boolean;
  /** True when rollouts could be dispatched now and were not. */
  readonly canDispatch: boolean;
  /** When the storage of finished rollouts may be freed; null while the run goes on, or once freed. */
  readonly freeAt: number | null;
  /** When its endpoint is to be asked for permits, or lets the next rollouts begin; null when it awaits neither. */
  readonly endpointAt: number | null;
  /** When a judge is to be asked, or one that was asked is silent; null when none is awaited. */
  readonly judgeAt: number | null;
  /** When a training run has something to write, to tell or to ask; null for none. */
  readonly trainingAt: number | null;
  /** When the run is to be ended early; null without a deadline. */
  readonly deadlineAt: number | null;
}

/** A full batch is written at once, a part of one after a second: D1 takes batches, not rows. */
export const DRAIN_ROWS = 100;
const DRAIN_AFTER_MS = 1000;
const LONGEST_DRAIN_WAIT_MS = 60_000;

/** Epoch milliseconds of the next alarm, or null for none. */
export function nextRunAlarm(clock: RunClock): number | null {
  const { askAt, freeAt, endpointAt, judgeAt, trainingAt, deadlineAt } = clock;
  const all = [askAt, freeAt, endpointAt, judgeAt, trainingAt, deadlineAt, drainAt(clock)];
  const due = all.filter((at) => at !== null);
  if (clock.untold || clock.canDispatch) due.push(clock.now);
  return due.length === 0 ? null : Math.max(clock.now, Math.min(...due));
}

/** When the outbox is to be drained; null when it is empty. */
export function drainAt(
  clock: Pick<RunClock, "now" | "undrained" | "lastDrainAt" | "drainFailures" | "rowStale">,
): number | null {
  if (clock.undrained === 0 && !clock.rowStale) return null;
  if (clock.drainFailures > 0) {
    const wait = DRAIN_AFTER_MS * 2 ** Math.min(clock.drainFailures, 10);
    return clock.lastDrainAt + Math.min(LONGEST_DRAIN_WAIT_MS, wait);
  }
  return clock.undrained >= DRAIN_ROWS ? clock.now : clock.lastDrainAt + DRAIN_AFTER_MS;
}
