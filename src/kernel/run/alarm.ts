/**
 * Computes when a run's next alarm is due. Pure, so that every case can be tested.
 * A settled run with nothing left to write needs only the alarm that frees its rollouts.
 */
export interface RunClock {
  readonly now: number;
  /** When the first silent rollout or scoring group is to be asked; null if nothing is in flight. */
  readonly askAt: number | null;
  /** Since when the run's row in D1 is out of date; null if it is not. */
  readonly rowStaleAt: number | null;
  /** When the row was last written, or a write was tried. */
  readonly rowTriedAt: number;
  /** The least time between two writes of the row, in milliseconds. */
  readonly rowEveryMs: number;
  /** How many writes failed in a row. */
  readonly rowFailures: number;
  /** When webhooks are to be notified of events; null if there is nothing to report. */
  readonly notifyAt: number | null;
  /** When released reservations are to be written to the audit log; null if there are none. */
  readonly releaseAt: number | null;
  /** True if rollouts must still be notified to stop. */
  readonly unnotified: boolean;
  /** True when rollouts could be dispatched now and were not. */
  readonly canDispatch: boolean;
  /** When the storage of finished rollouts may be freed; null while the run is not settled, or once all is freed. */
  readonly freeAt: number | null;
  /** When leases are to be renewed, or a lease lets the next rollouts begin; null if neither is awaited. */
  readonly endpointAt: number | null;
  /** When a judge is to be called, or one that was called is silent; null if no judge is awaited. */
  readonly judgeAt: number | null;
  /** When rollouts are asked for money that they do not use; null while money is not short. */
  readonly reclaimAt: number | null;
  /** When the training part has something to write, to report or to ask; null if nothing. */
  readonly trainingAt: number | null;
  /** When the run is to be ended early; null without a deadline. */
  readonly deadlineAt: number | null;
}

/** At the beginning of a run, and when its status changes, the row is at most a second behind. */
export const ROW_EVERY_MS = 1000;
/** Later in a long run it is behind by this part of its age, up to the longest time: D1 is shared by all runs. */
const ROW_PART_OF_AGE = 1 / 20;
const ROW_LONGEST_MS = 15_000;
const LONGEST_ROW_WAIT_MS = 60_000;

/** The least time between two writes of the row of a run that is so old, both in milliseconds. */
export function rowEveryMs(age: number): number {
  return Math.min(ROW_LONGEST_MS, Math.max(ROW_EVERY_MS, age * ROW_PART_OF_AGE));
}

/** Epoch milliseconds of the next alarm, or null for none. */
export function nextRunAlarm(clock: RunClock): number | null {
  const { askAt, notifyAt, releaseAt, freeAt, endpointAt, judgeAt, reclaimAt, trainingAt, deadlineAt } = clock;
  const all = [
    askAt,
    notifyAt,
    releaseAt,
    freeAt,
    endpointAt,
    judgeAt,
    reclaimAt,
    trainingAt,
    deadlineAt,
    rowDueAt(clock),
  ];
  const due = all.filter((at) => at !== null);
  if (clock.unnotified || clock.canDispatch) due.push(clock.now);
  return due.length === 0 ? null : Math.max(clock.now, Math.min(...due));
}

/**
 * When the run's row in D1 is to be written; null while it is up to date. In a long run the first change waits for those
 * that follow, such as the score of a rollout that ended: one write has them all.
 */
export function rowDueAt({
  rowStaleAt,
  rowTriedAt,
  rowEveryMs: every,
  rowFailures,
}: Pick<RunClock, "rowStaleAt" | "rowTriedAt" | "rowEveryMs" | "rowFailures">): number | null {
  if (rowStaleAt === null) return null;
  const wait = every * 2 ** Math.min(rowFailures, 10);
  return Math.max(rowTriedAt + Math.min(LONGEST_ROW_WAIT_MS, wait), rowStaleAt + every - ROW_EVERY_MS);
}
