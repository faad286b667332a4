/**
 * Chooses which rollouts of a run are exported, from their rows in the run's own SQLite. No trajectory is read for it.
 *
 * Invariants. All pages show the run as it was at the request of the first page (`upto`): of each slot, the latest
 * attempt that had ended by then. So "best of its group" and "first with this text" hold over all pages, and nothing is
 * exported twice. Work and bytes per page are bounded: a page may be empty although more pages follow.
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
 * Where a page begins. sft, verifiers: after the end number `at`; `pair` is the end number from which on no row with
 * the next row's text counts, or 0. dpo: at pair `pair` of group `at`.
 */
interface Cursor {
  readonly upto: number;
  readonly at: number;
  readonly pair: number;
}
/** One line: the rows of its rollouts, one or the two of a pair. `next`: the cursor after it. */
interface Line {
  readonly rows: readonly Row[];
  readonly next: Cursor;
}
/** A line with the full entries of its rollouts. */
interface Item {
  readonly entries: readonly RolloutEntry[];
  readonly next: Cursor;
}

/** How many segments one page reads whole, and how many trajectories it reads one by one. */
const SEGMENTS = 10;
const SINGLE_READS = 400;

/** `most`: stored bytes of the trajectories on the page, unless one item has more. */
export function exportPage(
  store: RunStore,
  spec: RunSpec,
  sql: SqlStorage,
  { limit, after, ...chosen }: ExportQuery,
  most: number = LIMITS.pageBytes,
): ExportPage {
  const cursor = cursorOf(after) ?? { upto: store.head().finished, at: 0, pair: 0 };
  const rows = new ExportRows(sql, chosen, cursor.upto);
  const { lines, next } = chosen.format === "dpo" ? pairs(rows, chosen, cursor, limit) : singles(rows, cursor, limit);
  const entries = rows.entries(lines.flatMap((line) => line.rows));
  const items = lines.map((line): Item => {
    return { entries: line.rows.flatMap(({ seq }) => entries.get(seq) ?? []), next: line.next };
  });
  const { page, segments } = withinBounds(store, items, most);
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

/** Lines in the order of the rollouts' ends. */
function singles(rows: ExportRows, { upto, at, pair }: Cursor, limit: number): { lines: Line[]; next: Cursor | null } {
  const lines: Line[] = [];
  let next: Cursor | null = null;
  // An undecided row of the previous page is the first row of this one.
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

/** Pairs group by group, in each group those with the largest difference first. */
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
  // A large group may have given more lines than the page may hold.
  const next = lines[limit - 1]?.next ?? null;
  return { lines: lines.slice(0, limit), next };
}

/** As many items as a page of `most` stored bytes may carry, at least one, and the segments they are read from. */
function withinBounds(
  store: RunStore,
  items: readonly Item[],
  most: number,
): { page: Item[]; segments: SegmentEntry[] } {
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
    const over = folded.size > SEGMENTS || single > SINGLE_READS || bytes > most || inline > LIMITS.inlinePageBytes;
    if (over && page.length > 0) break;
    page.push(item);
    for (const [number, segment] of folded) segments.set(number, segment);
  }
  return { page, segments: [...segments.values()] };
}
