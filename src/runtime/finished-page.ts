/** One page of a run's finished rollouts, as far as one answer between objects may carry it. */
import { LIMITS } from "../core/limits.ts";
import type { FinishedPage } from "./rpc.ts";
import type { RolloutEntry, RolloutRecord, SegmentEntry } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";

/** Segments one page of results may need: each is read whole. */
const SEGMENTS_PER_PAGE = 10;

export function recordIn(store: RunStore, entry: RolloutEntry): RolloutRecord {
  return { entry, text: store.trajectory(entry.seq) };
}

export function finishedPage(
  store: RunStore,
  after: number,
  limit: number,
  outcome: string | null,
): FinishedPage {
  const found = store.finished(after, limit, outcome);
  const rows: RolloutRecord[] = [];
  let held = 0;
  for (const row of found) {
    const record = recordIn(store, row);
    held += record.text?.length ?? 0;
    if (held > LIMITS.inlinePageBytes && rows.length > 0) break;
    rows.push(record);
  }
  return pageOf(rows, found.length, store.segmentsAfter(after, LIMITS.resultsPerPage));
}

/** The rows that the page's first segments and the run itself can answer for. */
function pageOf(
  rows: readonly RolloutRecord[],
  found: number,
  segments: readonly SegmentEntry[],
): FinishedPage {
  const seqOf = ({ entry }: RolloutRecord) => entry.finish_seq ?? 0;
  const needed = segments.filter(({ first_seq, last_seq }) =>
    rows.some((row) => seqOf(row) >= first_seq && seqOf(row) <= last_seq),
  );
  const beyond = needed[SEGMENTS_PER_PAGE]?.first_seq ?? Number.POSITIVE_INFINITY;
  const page = rows.filter((row) => seqOf(row) < beyond);
  return {
    rows: page,
    cut: page.length < found,
    segments: needed.slice(0, SEGMENTS_PER_PAGE),
  };
}
