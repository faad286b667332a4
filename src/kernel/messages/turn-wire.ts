/** A page of a rollout's turns, and the fields of a rollout besides its turns. */
import type { StoredTurn, Trajectory } from "../../contract/trajectory.ts";

/** The fields of a rollout as a whole, without its long texts. */
export const REST = [
  ...["task_key", "example_id", "answer", "final_env_response", "stop_condition", "is_truncated", "cleanup_errors"],
  ...["failed_calls", "tools", "usage", "started_at", "ended_at", "forked_from", "rescored_from"],
  ...["error", "cancelled"],
] as const satisfies readonly (keyof Trajectory)[];
export type TrajectoryRest = Pick<Trajectory, (typeof REST)[number]>;

export interface TurnsAsk {
  /** Turns after this one; null: from the first. */
  readonly after: number | null;
  /** The last turns before this one; null: no such bound. */
  readonly before: number | null;
  /** 0: no turns, only their number. */
  readonly limit: number;
  /** Bytes of storage; at least one turn is returned. */
  readonly bytes: number;
}

export interface TurnSlice {
  /** Turns answered so far. */
  readonly total: number;
  /** Epoch milliseconds. */
  readonly started_at: number;
  /** The range of these turns, half-open, and whether there are more in the direction of the query. */
  readonly from: number;
  readonly to: number;
  readonly more: boolean;
  readonly turns: readonly StoredTurn[];
  /** The size of each turn in storage, as JSON. */
  readonly bytes: readonly number[];
}

/**
 * The range of turns on a page, half-open, and whether there are more in the direction of the query: after it, or
 * before it if the query reads from the end. At most `bytes` of storage, but at least one turn.
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
