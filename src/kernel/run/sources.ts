/** The trajectories and records of a run's ended rollouts, for rollouts (of any run) that take them over. */

import { capOf } from "../../core/costs/run-costs.ts";
import type { SourcePage } from "../messages/rpc.ts";
import type { RolloutEntry, SegmentEntry } from "../messages/run-records.ts";
import type { RolloutSlot, RunSpec, SourceSlot, Starter } from "../messages/wire.ts";
import { cancelReasonOf } from "./control.ts";
import { recordIn } from "./pages.ts";
import type { RunStore } from "./store.ts";

/** The records are without their judgements, which may be too large for one reply. */
export function sourcesIn(store: RunStore, places: readonly SourceSlot[]): SourcePage {
  const rows = places.map(({ group, slot, attempt }): RolloutEntry | null => {
    const row = attempt === null ? store.latestDone({ group, slot }) : store.rollout({ group, slot, attempt });
    return row && { ...row, judgements: null };
  });
  const segments = new Map<number, SegmentEntry>();
  for (const row of rows) {
    const segment = row === null ? null : segmentOf(store, row.finish_seq);
    if (segment !== null) segments.set(segment.segment, segment);
  }
  const { stop } = store.head();
  return {
    records: rows.map((row) => (row === null ? null : recordIn(store, row))),
    segments: [...segments.values()],
    cancelled: stop?.kind === "cancel" ? (stop.reason ?? "user") : null,
  };
}

/** The segment that covers this end; null if none does yet. */
export function segmentOf(store: RunStore, finishSeq: number | null): SegmentEntry | null {
  if (finishSeq === null) return null;
  const entry = store.segmentsAfter(finishSeq - 1, 1)[0];
  return entry !== undefined && entry.first_seq <= finishSeq ? entry : null;
}

/** The rollouts that must still be started: running, and not marked to be stopped. */
export function startersIn(
  store: RunStore,
  spec: RunSpec,
  places: readonly RolloutSlot[],
  quarantineUpTo = 0,
): Starter[] {
  const head = store.head();
  const capped = capOf(spec) !== null;
  return places.flatMap((place) => {
    const row = store.rollout(place);
    if (row?.status !== "running" || cancelReasonOf(head, row) !== null) return [];
    const group = head.training === null ? null : store.training.group(row.group_index);
    const paid = capped ? { ceiling: row.ceiling } : {};
    const starter = { ...starterOf(row), ...paid, ...(row.seq <= quarantineUpTo && { quarantine: true }) };
    if (group === null) return [starter];
    const { example_index, dispatch_version: policy_version } = group;
    const policy_generation = head.training?.trainer.generation ?? 0;
    return [{ ...starter, example_index, policy_version, policy_generation }];
  });
}

function starterOf(row: RolloutEntry): Starter {
  const { group_index: group, slot, attempt, id: rollout_id, host: shard, carries } = row;
  const place = { group, slot, attempt };
  // Always the previous attempt: a retry creates the next attempt in the same slot.
  return {
    ...place,
    rollout_id,
    host: shard,
    ...(carries !== null && { carries: { ...place, attempt: attempt - 1 } }),
  };
}

/** A segment for a trace. The run's own end is in the segment of its last rollout. */
export function traceOf(store: RunStore, spec: RunSpec, segment: number) {
  const entry = store.segment(segment);
  if (entry === null) return null;
  const { first_seq, last_seq, key } = entry;
  const rollouts = store.finished(first_seq - 1, last_seq - first_seq + 1, null, true);
  const { settled_at: at, status, error, finished } = store.head();
  const ended = at === null || last_seq < finished ? null : { at, status, error: error?.code ?? null };
  return { spec, rollouts, ended, key };
}
