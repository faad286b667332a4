/** Rollouts of a run that have not ended, as its own rows know them. */

import type { InFlightEntry, InFlightQuery } from "../contract/run-records.ts";
import { cancelReasonOf } from "./control.ts";
import type { RunHead, RunningRow } from "./schema.ts";
import type { RunStore } from "./store.ts";

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
