/**
 * Which rollouts of a run are exported, chosen by their rows in the run's own SQLite: no trajectory is read for it.
 *
 * Invariants. A page is of the run as it stood when the first page was asked for (`upto`): of each slot the latest
 * attempt that had ended by then. So what is best in its group, or the first to say something, is so over all pages, and
 * nothing is there twice. Work and bytes of a page are bounded: it may come back with nothing and still go on.
 */
import { type ExportQuery, pairsOf } from "../../contract/export.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ExportPage } from "../contract/rpc.ts";
import type { RolloutEntry, SegmentEntry } from "../contract/run-records.ts";
import type { RunSpec } from "../contract/wire.ts";
import { advantagesIn } from "./advantages.ts";
import { recordIn } from "./pages.ts";
import { segmentOf } from "./sources.ts";
import type { RunStore } from "./store.ts";

/** Where a page begins: behind this end (sft, verifiers), or at this pair of this group (dpo). */
interface Cursor {
  readonly upto: number;
  readonly at: number;
  readonly pair: number;
}
/** The rollouts of one line: one, or the two of a pair. `next`: the cursor behind it. */
interface Item {
  readonly entries: readonly RolloutEntry[];
  readonly next: Cursor;
}
type Chosen = Omit<ExportQuery, "limit" | "after">;
type ScoredEntry = RolloutEntry & { readonly reward: number };

/** Places of the run one page looks at. */
const SCANNED = 10_000;
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
  const groups = Math.ceil(SCANNED / spec.rollouts_per_example);
  const { items, next } =
    chosen.format === "dpo" ? pairs(rows, chosen, cursor, { limit, groups }) : singles(rows, cursor, limit);
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
function singles(rows: ExportRows, { upto, at }: Cursor, limit: number): { items: Item[]; next: Cursor | null } {
  const last = Math.min(upto, at + SCANNED);
  const items = rows.ended(at, last, limit).map((entry): Item => {
    return { entries: [entry], next: { upto, at: entry.finish_seq ?? 0, pair: 0 } };
  });
  if (items.length === limit) return { items, next: items.at(-1)?.next ?? null };
  return { items, next: last < upto ? { upto, at: last, pair: 0 } : null };
}

/** Group by group, and in each the widest apart first. */
function pairs(
  rows: ExportRows,
  { min_reward = Number.NEGATIVE_INFINITY, best_of_group }: Chosen,
  { upto, at, pair }: Cursor,
  { limit, groups }: { readonly limit: number; readonly groups: number },
): { items: Item[]; next: Cursor | null } {
  const items: Item[] = [];
  for (const [index, group] of rows.groups(at, groups + 1).entries()) {
    if (items.length >= limit) break;
    if (index === groups) return { items, next: { upto, at: group, pair: 0 } };
    const all = pairsOf(rows.ofGroup(group)).slice(0, best_of_group ? 1 : undefined);
    for (const [rank, entries] of all.entries()) {
      const before = group === at && rank < pair;
      if (before || entries[0].reward < min_reward) continue;
      items.push({ entries, next: { upto, at: group, pair: rank + 1 } });
    }
  }
  // A large group may have brought more than the page is to hold.
  const next = items[limit - 1]?.next ?? null;
  return { items: items.slice(0, limit), next };
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

/** The rows that are chosen, as SQL: conditions on one row, asked by index of the others of its group. */
class ExportRows {
  readonly #sql: SqlStorage;
  readonly #chosen: Chosen;
  readonly #upto: number;

  constructor(sql: SqlStorage, chosen: Chosen, upto: number) {
    this.#sql = sql;
    this.#chosen = chosen;
    this.#upto = upto;
    // Asked of few runs, so that the others need not pay for an index.
    if (chosen.dedupe) {
      sql.exec("create index if not exists rollouts_said on rollouts (said) where said is not null");
    }
  }

  ended(after: number, last: number, limit: number): RolloutEntry[] {
    return this.#all<RolloutEntry>(
      `select * from rollouts r where finish_seq > ?3 and finish_seq <= ?4 and ${this.#counts("r")}
       order by finish_seq limit ?5`,
      after,
      last,
      limit,
    );
  }

  /** Groups from this one on, in order. */
  groups(from: number, limit: number): number[] {
    const rows = this.#sql.exec<{ group_index: number }>(
      "select distinct group_index from rollouts where group_index >= ? order by group_index limit ?",
      from,
      limit,
    );
    return Array.from(rows, ({ group_index }) => group_index);
  }

  /** Best first. */
  ofGroup(group: number): ScoredEntry[] {
    return this.#all<ScoredEntry>(
      `select * from rollouts r where group_index = ?3 and ${this.#counts("r")}
       order by reward desc, slot`,
      group,
    );
  }

  /** ?1 = upto, ?2 = the least reward or null. */
  #counts(row: string): string {
    const { format, best_of_group, dedupe } = this.#chosen;
    const conditions = [this.#stands(row)];
    if (format !== "dpo" && best_of_group) conditions.push(this.#isBest(row));
    if (dedupe) {
      const earlier = `${row}_said`;
      const also = format !== "dpo" && best_of_group ? `and ${this.#isBest(earlier)}` : "";
      conditions.push(`not exists (select 1 from rollouts ${earlier} where ${earlier}.said = ${row}.said
        and ${earlier}.finish_seq < ${row}.finish_seq and ${this.#stands(earlier)} ${also})`);
    }
    return conditions.join(" and ");
  }

  /** The latest attempt of its slot, scored where a score is asked for. */
  #stands(row: string): string {
    const { format, min_reward, best_of_group } = this.#chosen;
    const later = `${row}_later`;
    const all = format === "verifiers" && min_reward === undefined && !best_of_group;
    const scored = `${row}.outcome = 'scored' and ${row}.digest is not null
      and (?2 is null or ${row}.reward >= ?2)`;
    return `${row}.finish_seq <= ?1 and ${all ? "true" : scored}
      and not exists (select 1 from rollouts ${later} where ${later}.group_index = ${row}.group_index
        and ${later}.slot = ${row}.slot and ${later}.attempt > ${row}.attempt and ${later}.finish_seq <= ?1)`;
  }

  #isBest(row: string): string {
    const better = `${row}_better`;
    return `not exists (select 1 from rollouts ${better} where ${better}.group_index = ${row}.group_index
      and ${this.#stands(better)} and (${better}.reward > ${row}.reward
        or (${better}.reward = ${row}.reward and ${better}.slot < ${row}.slot)))`;
  }

  #all<Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: number[]): Row[] {
    // Of a pair it is the chosen one that must be worth so much.
    const least = this.#chosen.format === "dpo" ? null : (this.#chosen.min_reward ?? null);
    return this.#sql.exec<Row>(query, this.#upto, least, ...bindings).toArray();
  }
}
