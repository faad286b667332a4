/** Some turns of a rollout, without the rest of them; and what is said of it beside its turns. */
import type { StoredTurn, Trajectory } from "../../contract/trajectory.ts";

/** What is said of a rollout as a whole, without its long texts. */
export const REST = [
  ...["task_key", "example_id", "answer", "final_env_response", "stop_condition", "is_truncated", "cleanup_errors"],
  ...["failed_calls", "tools", "usage", "started_at", "ended_at", "forked_from", "rescored_from"],
  ...["error", "cancelled"],
] as const satisfies readonly (keyof Trajectory)[];
export type TrajectoryRest = Pick<Trajectory, (typeof REST)[number]>;

export interface TurnsAsk {
  /** Turns behind this one; null: from the first. */
  readonly after: number | null;
  /** The last ones before this one; null: no such bound. */
  readonly before: number | null;
  /** 0: none of them, but how many there are. */
  readonly limit: number;
  /** Of storage; one turn at least. */
  readonly bytes: number;
}

export interface TurnSlice {
  /** Turns answered so far. */
  readonly total: number;
  /** Epoch milliseconds. */
  readonly started_at: number;
  /** Which turns these are, half-open, and whether there are more on the way of the ask. */
  readonly from: number;
  readonly to: number;
  readonly more: boolean;
  readonly turns: readonly StoredTurn[];
  /** What each of them takes in storage, as JSON. */
  readonly bytes: readonly number[];
}

/**
 * Which turns a page has, half-open, and whether there are more on its way: behind it, or before it where it was asked for
 * from its end. No more than `bytes` of storage, but one turn at least.
 */
export function rangeOf(
  total: number,
  { after, before, limit, bytes }: TurnsAsk,
  bytesOf: (index: number) => number,
): Pick<TurnSlice, "from" | "to" | "more"> {
  const first = Math.min((after ?? -1) + 1, total);
  const end = Math.max(first, Math.min(before ?? total, total));
  const backwards = before !== null && after === null;
  let [taken, held] = [0, 0];
  while (taken < Math.min(limit, end - first)) {
    held += bytesOf(backwards ? end - taken - 1 : first + taken);
    if (taken > 0 && held > bytes) break;
    taken += 1;
  }
  const more = taken < end - first;
  return backwards ? { from: end - taken, to: end, more } : { from: first, to: first + taken, more };
}
