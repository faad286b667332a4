/** One page of a run's finished rollouts, as far as one answer between objects may carry it. */
import { LIMITS } from "../../contract/limits.ts";
import type { FinishedPage } from "../contract/rpc.ts";
import type { RolloutEntry, RolloutRecord, SegmentEntry } from "../contract/run-records.ts";
import type { RunSpec } from "../contract/wire.ts";
import { advantagesIn } from "./advantages.ts";
import type { RunStore } from "./store.ts";

/** Segments one page of results may need: each is read whole. */
const SEGMENTS_PER_PAGE = 10;

export function recordIn(
  store: RunStore,
  entry: RolloutEntry,
  advantages: ReadonlyMap<number, number> = NONE,
): RolloutRecord {
  const advantage = advantages.get(entry.seq);
  const record = { entry, text: store.trajectory(entry.seq) };
  return advantage === undefined ? record : { ...record, advantage };
}

const NONE: ReadonlyMap<number, number> = new Map();

export function finishedPage(
  store: RunStore,
  spec: RunSpec,
  after: number,
  limit: number,
  outcome: string | null,
): FinishedPage {
  const found = store.finished(after, limit, outcome);
  const advantages = advantagesIn(store, spec, found);
  const rows: RolloutRecord[] = [];
  let [held, bytes] = [0, 0];
  for (const row of found) {
    const record = recordIn(store, row, advantages);
    held += record.text?.length ?? 0;
    bytes += row.bytes;
    const over = held > LIMITS.inlinePageBytes || bytes > LIMITS.pageBytes;
    if (over && rows.length > 0) break;
    rows.push(record);
  }
  return pageOf(rows, found.length, store.segmentsAfter(after, LIMITS.resultsPerPage));
}

/** Rows of a segment that is not folded yet; null for one that is, or was never cut. */
export function unfoldedRows(store: RunStore, segment: number): RolloutRecord[] | null {
  const entry = store.segment(segment);
  if (entry === null || entry.key !== null) return null;
  const count = entry.last_seq - entry.first_seq + 1;
  return store.finished(entry.first_seq - 1, count, null).map((row) => recordIn(store, row));
}

/** The rows that the page's first segments and the run itself can answer for. */
function pageOf(rows: readonly RolloutRecord[], found: number, segments: readonly SegmentEntry[]): FinishedPage {
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
