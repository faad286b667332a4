/**
 * Which rollouts of a run are exported, chosen by their rows in the run's own SQLite: no trajectory is read for it.
 *
 * Invariants. A page is of the run as it stood when the first page was asked for (`upto`): of each slot the latest
 * attempt that had ended by then. So what is best in its group, or the first to say something, is so over all pages, and
 * nothing is there twice. Work and bytes of a page are bounded: it may come back with nothing and still go on.
 */
import { type ExportQuery, pairsOf } from "../../contract/export.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ExportPage } from "../messages/rpc.ts";
import type { RolloutEntry, SegmentEntry } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import { advantagesIn } from "./advantages.ts";
import { type Chosen, ExportRows, type Row } from "./export-rows.ts";
import { recordIn } from "./pages.ts";
import { segmentOf } from "./sources.ts";
import type { RunStore } from "./store.ts";

/**
 * Where a page begins. sft, verifiers: behind this end, where `pair` is the end from which on no
 * row that says the same as the next one counts, or 0. dpo: at this pair of this group.
 */
interface Cursor {
  readonly upto: number;
  readonly at: number;
  readonly pair: number;
}
/** One line: the rows of its rollouts, one or the two of a pair. `next`: the cursor behind it. */
interface Line {
  readonly rows: readonly Row[];
  readonly next: Cursor;
}
/** The same with the entries of its rollouts. */
interface Item {
  readonly entries: readonly RolloutEntry[];
  readonly next: Cursor;
}

/** Segments one page reads whole, and trajectories it reads one by one. */
const SEGMENTS = 10;
const SINGLE_READS = 400;

export function exportPage(
  store: RunStore,
  spec: RunSpec,
  sql: SqlStorage,
  { limit, after, ...chosen }: ExportQuery,
): ExportPage {
  const cursor = cursorOf(after) ?? { upto: store.head().finished, at: 0, pair: 0 };
  const rows = new ExportRows(sql, chosen, cursor.upto);
  const { lines, next } = chosen.format === "dpo" ? pairs(rows, chosen, cursor, limit) : singles(rows, cursor, limit);
  const entries = rows.entries(lines.flatMap((line) => line.rows));
  const items = lines.map((line): Item => {
    return { entries: line.rows.flatMap(({ seq }) => entries.get(seq) ?? []), next: line.next };
  });
  const { page, segments } = withinBounds(store, items);
  const cut = page.length < items.length;
  const shown = chosen.format === "verifiers" ? page.flatMap(({ entries }) => entries) : [];
  const advantages = advantagesIn(store, spec, shown);
  const behind = cut ? (page.at(-1)?.next ?? cursor) : next;
  return {
    items: page.map(({ entries }) => entries.map((entry) => recordIn(store, entry, advantages))),
    segments,
    next: behind === null ? null : `${behind.upto}-${behind.at}-${behind.pair}`,
  };
}

function cursorOf(text: string | undefined): Cursor | null {
  const [upto, at, pair] = text?.split("-").map(Number) ?? [];
  return upto === undefined || at === undefined || pair === undefined ? null : { upto, at, pair };
}

/** In the order of their ends. */
function singles(rows: ExportRows, { upto, at, pair }: Cursor, limit: number): { lines: Line[]; next: Cursor | null } {
  const lines: Line[] = [];
  let next: Cursor | null = null;
  // What the page before left undecided is about the first row.
  let known = pair;
  for (const row of rows.ended(at)) {
    const decided = rows.decide(row, known, true);
    known = 0;
    if (typeof decided === "number") {
      next = { upto, at: row.finish_seq - 1, pair: decided };
      break;
    }
    const behind = { upto, at: row.finish_seq, pair: 0 };
    if (decided) lines.push({ rows: [row], next: behind });
    if (lines.length === limit || rows.spent) {
      next = behind;
      break;
    }
  }
  return { lines, next };
}

/** Group by group, and in each the widest apart first. */
function pairs(
  rows: ExportRows,
  { min_reward = Number.NEGATIVE_INFINITY, best_of_group }: Chosen,
  { upto, at, pair }: Cursor,
  limit: number,
): { lines: Line[]; next: Cursor | null } {
  const lines: Line[] = [];
  for (const { group, members } of rows.groups(at)) {
    const all = pairsOf(members).slice(0, best_of_group ? 1 : undefined);
    for (const [rank, pairRows] of all.entries()) {
      const before = group === at && rank < pair;
      if (before || pairRows[0].reward < min_reward) continue;
      lines.push({ rows: pairRows, next: { upto, at: group, pair: rank + 1 } });
    }
    if (lines.length >= limit) break;
    if (rows.spent) return { lines, next: { upto, at: group + 1, pair: 0 } };
  }
  // A large group may have brought more than the page is to hold.
  const next = lines[limit - 1]?.next ?? null;
  return { lines: lines.slice(0, limit), next };
}

/** As many items as one page may carry, one at least, and the segments they are read from. */
function withinBounds(store: RunStore, items: readonly Item[]): { page: Item[]; segments: SegmentEntry[] } {
  const page: Item[] = [];
  const segments = new Map<number, SegmentEntry>();
  let [bytes, single, inline] = [0, 0, 0];
  for (const item of items) {
    const folded = new Map(segments);
    for (const entry of item.entries) {
      const segment = segmentOf(store, entry.finish_seq);
      if (segment?.key != null) folded.set(segment.segment, segment);
      else single += 1;
      if (segment?.key == null && entry.bytes <= LIMITS.inlineTrajectoryBytes) inline += entry.bytes;
      bytes += entry.bytes;
    }
    const over =
      folded.size > SEGMENTS || single > SINGLE_READS || bytes > LIMITS.pageBytes || inline > LIMITS.inlinePageBytes;
    if (over && page.length > 0) break;
    page.push(item);
    for (const [number, segment] of folded) segments.set(number, segment);
  }
  return { page, segments: [...segments.values()] };
}
