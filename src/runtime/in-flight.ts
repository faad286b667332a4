/** Rollouts of a run that have not ended, as its own rows know them. */
import type { RolloutInFlight } from "../core/run.ts";
import { cancelReasonOf } from "./run-control.ts";
import type { RunHead, RunningRow } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";
import type { Place } from "./wire.ts";

/** Which of them; `after` is the place of the last one seen. */
export interface InFlightQuery {
  readonly status: RolloutInFlight["status"] | null;
  readonly after: Place | null;
  readonly limit: number;
}

export type InFlightEntry = Omit<RolloutInFlight, "object" | "run_id">;

export function inFlightIn(store: RunStore, { status, after, limit }: InFlightQuery): InFlightEntry[] {
  const seen = after === null ? 0 : (store.rollout(after)?.seq ?? 0);
  const head = store.head();
  return store.inFlight(seen, limit, status).map((row) => entryOf(row, head));
}

function entryOf(row: RunningRow, head: RunHead): InFlightEntry {
  const { id, group_index: group, slot, attempt, status, turns, started_at } = row;
  return {
    ...{ id, group, slot, attempt, status },
    cancelling: cancelReasonOf(head, row) !== null,
    turns: status === "running" ? null : turns,
    started_at: started_at === null ? null : Math.floor(started_at / 1000),
  };
}
