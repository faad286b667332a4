/**
 * When a run must next look at itself: pure, so that every case is a test.
 * A settled run with nothing left to write costs nothing but the alarm that frees its rollouts.
 */
export interface RunClock {
  readonly now: number;
  /** When the first silent rollout or unit is to be asked; null when nothing is in flight. */
  readonly askAt: number | null;
  /** True when the run's row in D1 is behind. */
  readonly rowStale: boolean;
  /** When it was last written, or tried to. */
  readonly rowTriedAt: number;
  /** How often in a row that failed. */
  readonly rowFailures: number;
  /** When webhooks are to be told what happened; null when they know. */
  readonly tellAt: number | null;
  /** When the audit log is to hear what was released; null when it knows. */
  readonly releaseAt: number | null;
  /** Rollouts that must still be told to stop. */
  readonly untold: boolean;
  /** True when rollouts could be dispatched now and were not. */
  readonly canDispatch: boolean;
  /** When the storage of finished rollouts may be freed; null while the run goes on, or once freed. */
  readonly freeAt: number | null;
  /**
   * When its endpoint or its organisation is to be asked for permits, or lets the next rollouts begin; null when it awaits
   * neither.
   */
  readonly endpointAt: number | null;
  /** When a judge is to be asked, or one that was asked is silent; null when none is awaited. */
  readonly judgeAt: number | null;
  /** When a training run has something to write, to tell or to ask; null for none. */
  readonly trainingAt: number | null;
  /** When the run is to be ended early; null without a deadline. */
  readonly deadlineAt: number | null;
}

/** The row follows the run, written once a second at most. */
const ROW_EVERY_MS = 1000;
const LONGEST_ROW_WAIT_MS = 60_000;

/** Epoch milliseconds of the next alarm, or null for none. */
export function nextRunAlarm(clock: RunClock): number | null {
  const { askAt, tellAt, releaseAt, freeAt, endpointAt, judgeAt, trainingAt, deadlineAt } = clock;
  const all = [askAt, tellAt, releaseAt, freeAt, endpointAt, judgeAt, trainingAt, deadlineAt, rowDueAt(clock)];
  const due = all.filter((at) => at !== null);
  if (clock.untold || clock.canDispatch) due.push(clock.now);
  return due.length === 0 ? null : Math.max(clock.now, Math.min(...due));
}

/** When the run's row in D1 is to be written; null while it says what is so. */
export function rowDueAt({
  rowStale,
  rowTriedAt,
  rowFailures,
}: Pick<RunClock, "rowStale" | "rowTriedAt" | "rowFailures">): number | null {
  if (!rowStale) return null;
  const wait = ROW_EVERY_MS * 2 ** Math.min(rowFailures, 10);
  return rowTriedAt + Math.min(LONGEST_ROW_WAIT_MS, wait);
}
