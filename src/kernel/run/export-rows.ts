/**
 * The rows of a run that an export chooses.
 *
 * Invariants. Rows are read one by one and counted: no condition makes SQLite scan many rows in one statement, and the
 * reader ends the page once it is `spent`. A group's best row is computed once per page.
 */
import type { ExportQuery } from "../../contract/export.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import { PAGE_COLUMNS } from "./schema.ts";

export type Chosen = Omit<ExportQuery, "limit" | "after">;

/** The columns that decide whether a row is chosen. */
export interface Row {
  readonly [column: string]: SqlStorageValue;
  readonly seq: number;
  readonly group_index: number;
  readonly slot: number;
  readonly finish_seq: number;
  readonly reward: number;
  readonly said: string | null;
  /** 1: the latest attempt of its slot, and scored if the export requires a score. */
  readonly current: number;
  /** 1: no earlier row has the same text. */
  readonly new: number;
}

/** Rows that SQLite may read for one page; a statement counts as READS_PER_STATEMENT rows, since it takes as long. */
const READS = 40_000;
const READS_PER_STATEMENT = 20;

export class ExportRows {
  readonly #sql: SqlStorage;
  readonly #chosen: Chosen;
  readonly #upto: number;
  /** True if rollouts without a score are chosen too. */
  readonly #all: boolean;
  /** The `seq` of the best row, by group. */
  readonly #best = new Map<number, number>();
  /** The earliest end of a row that counts, by text. */
  readonly #counted = new Map<string, number>();
  #read = 0;

  constructor(sql: SqlStorage, chosen: Chosen, upto: number) {
    this.#sql = sql;
    this.#chosen = chosen;
    this.#upto = upto;
    this.#all = chosen.format === "verifiers" && chosen.min_reward === undefined && !chosen.best_of_group;
    if (chosen.dedupe) this.#index();
  }

  /** True if the page has used its quota of rows. */
  get spent(): boolean {
    return this.#read >= READS;
  }

  /** Rows that ended after `after`, in order. */
  ended(after: number): Iterable<Row> {
    return this.#rows("finish_seq > ?3 and finish_seq <= ?1 order by finish_seq", after);
  }

  /** Groups from this one on, in order, each with its chosen rows, best first. */
  *groups(from: number): Generator<{ readonly group: number; readonly members: Row[] }> {
    let group: number | null = null;
    let rows: Row[] = [];
    for (const row of this.#rows("group_index >= ?3 order by group_index", from)) {
      if (group !== null && group !== row.group_index) {
        yield { group, members: this.#members(rows) };
        rows = [];
      }
      group = row.group_index;
      rows.push(row);
    }
    if (group !== null) yield { group, members: this.#members(rows) };
  }

  #members(rows: readonly Row[]): Row[] {
    return rows.filter((row) => this.decide(row) === true).sort(bestFirst);
  }

  /** By `seq`, without their judgements. */
  entries(rows: readonly Row[]): ReadonlyMap<number, RolloutEntry> {
    const query = `select ${PAGE_COLUMNS} from rollouts where seq in (select value from json_each(?))`;
    const found = this.#sql.exec<RolloutEntry>(query, JSON.stringify(rows.map(({ seq }) => seq)));
    return new Map(Array.from(found, (entry) => [entry.seq, entry]));
  }

  /**
   * Whether the row is chosen. A number: the page is spent, and no row with the same text counts from this end on.
   * `before`: the end from which on that is already known; 0: unknown. The search goes back from the row, so no row is
   * read for two others.
   */
  decide(row: Row, before = 0, mayStop = false): boolean | number {
    if (!this.#counts(row)) return false;
    if (!this.#chosen.dedupe || row.said === null) return true;
    const known = this.#counted.get(row.said);
    if (known !== undefined && known < row.finish_seq) return false;
    this.#counted.set(row.said, row.finish_seq);
    if (row.new === 1) return true;
    const same = `said = ?3 and finish_seq < ?4 and ${this.#all ? "true" : "outcome = 'scored'"}`;
    for (const other of this.#rows(`${same} order by finish_seq desc`, row.said, before || row.finish_seq)) {
      if (this.#counts(other)) return false;
      if (mayStop && this.spent) return other.finish_seq;
    }
    return true;
  }

  #counts(row: Row): boolean {
    if (row.current !== 1) return false;
    return this.#chosen.format === "dpo" || !this.#chosen.best_of_group || this.#bestOf(row.group_index) === row.seq;
  }

  #bestOf(group: number): number | null {
    const known = this.#best.get(group);
    if (known !== undefined) return known;
    let best: Row | null = null;
    for (const row of this.#rows("group_index = ?3", group)) {
      if (row.current === 1 && (best === null || bestFirst(row, best) < 0)) best = row;
    }
    if (best !== null) this.#best.set(group, best.seq);
    return best?.seq ?? null;
  }

  /** ?1 = upto, ?2 = the least reward or null. */
  *#rows(where: string, ...bindings: SqlStorageValue[]): Generator<Row> {
    const { format, min_reward, dedupe } = this.#chosen;
    const scored = "r.outcome = 'scored' and r.digest is not null and (?2 is null or r.reward >= ?2)";
    const current = `ifnull(r.finish_seq <= ?1, 0) and ${this.#all ? "true" : scored}
      and not exists (select 1 from rollouts later where later.group_index = r.group_index
        and later.slot = r.slot and later.attempt > r.attempt and later.finish_seq <= ?1)`;
    const isNew = `not exists (select 1 from rollouts other where other.said = r.said
      and other.finish_seq < r.finish_seq ${this.#all ? "" : "and other.outcome = 'scored'"})`;
    const query = `select seq, group_index, slot, finish_seq, reward, said, ${current} as current,
      ${dedupe ? isNew : 0} as new from rollouts r where ${where}`;
    // For a pair, the minimum reward applies to the chosen rollout only.
    const least = format === "dpo" ? null : (min_reward ?? null);
    const cursor = this.#sql.exec<Row>(query, this.#upto, least, ...bindings);
    this.#read += READS_PER_STATEMENT;
    let read = 0;
    for (const row of cursor) {
      this.#read += cursor.rowsRead - read;
      read = cursor.rowsRead;
      yield row;
    }
  }

  /** Created on demand: few runs are exported this way, and the others need not pay for an index. */
  #index(): void {
    const [name, also] = this.#all ? ["rollouts_said_ended", ""] : ["rollouts_said_scored", "and outcome = 'scored'"];
    this.#sql.exec("drop index if exists rollouts_said");
    this.#sql.exec(`create index if not exists ${name} on rollouts (said, finish_seq) where said is not null ${also}`);
  }
}

function bestFirst(one: Row, other: Row): number {
  return other.reward - one.reward || one.slot - other.slot;
}
