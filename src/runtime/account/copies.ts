/**
 * Copies of the entries in the object store, as files of up to 1,000 lines, and months that are closed with a hash over
 * their files. This is what is decided and kept of them; copying.ts carries it out.
 *
 * Invariants. A file is decided on before it is written, and then never changes: who writes it again writes the same
 * bytes. Files follow each other without gaps, the next is decided on once the last is stored, and none crosses the end
 * of a month. A month is closed when it is over and all its entries have copies; only then do its entries leave the
 * object. Its hash holds the hash of the month before. What a settlement asks of the files is about the newest alone.
 */
import { canonicalJson } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { MonthState } from "../contract/money-wire.ts";
import type { Rows } from "../kit/rows.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { endOfMonth, monthOf } from "./books-schema.ts";
import { type Entries, entryOf, type MonthRow } from "./entries.ts";

const ENTRIES_A_FILE = 1000;
/** How long an entry waits for others to be copied with. */
export const COPY_WAIT_MS = 60_000;

// Types and not interfaces: SQLite's rows are records by name.
export type CopyRow = { first_entry: number; last_entry: number; month: string; sha256: string; stored: number };

/** A file that is to be written. */
export interface CopyFile extends CopyRow {
  readonly text: string;
}

/** A month that is over, as its statement says it; `text` is that as JSON. */
export interface ClosedMonth {
  readonly state: MonthState & { readonly sha256: string; readonly closed_at: number };
  readonly text: string;
}

export class Copies {
  readonly #rows: Rows;
  readonly #entries: Entries;

  constructor(rows: Rows, entries: Entries) {
    this.#rows = rows;
    this.#entries = entries;
  }

  /** The next file that is due; the caller's transaction keeps what is decided. */
  decide(now: number): CopyFile | null {
    const decided = this.#newest();
    if (decided?.stored === 0) return { ...decided, text: this.textOf(decided) };
    const range = this.#nextRange();
    if (range === null || this.#dueAt(range, now) > now) return null;
    const { first_entry, last_entry, month } = range;
    const text = this.textOf({ first_entry, last_entry });
    const row = { first_entry, last_entry, month: month.month, sha256: sha256Hex(text), stored: 0 };
    this.#rows.insert("copies", row);
    return { ...row, text };
  }

  noteStored({ first_entry }: CopyRow): void {
    this.#rows.set("copies", { first_entry }, { stored: 1 });
  }

  /** The number of the last entry that has a copy. */
  last(): number {
    const newest = this.#newest();
    if (newest === null) return 0;
    return newest.stored === 1 ? newest.last_entry : newest.first_entry - 1;
  }

  /** Since when the first entry without a copy has waited. */
  behindSince(): number | null {
    const query = "select at from entries where number > ? order by number limit 1";
    return this.#rows.one<{ at: number }>(query, this.last())?.at ?? null;
  }

  /** When the next file is due, or a month is to be closed, or entries are to leave. */
  nextAt(now: number): number | null {
    if (this.leaving()) return now;
    const range = this.#nextRange();
    const open = this.#rows.one<{ month: string }>("select month from months where sha256 is null order by month");
    const due = [
      range === null ? null : this.#dueAt(range, now),
      open === null ? null : Math.max(now, endOfMonth(open.month)),
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Files of a month in the order of their entries. */
  files({ first_entry, last_entry }: Pick<MonthRow, "first_entry" | "last_entry">): CopyRow[] {
    const query = "select * from copies where first_entry between ? and ? and stored = 1 order by first_entry";
    return this.#rows.all<CopyRow>(query, first_entry, last_entry);
  }

  /** Stored files with entries before this number, the newest first. */
  filesBefore(number: number, limit: number): CopyRow[] {
    const query = "select * from copies where first_entry < ? and stored = 1 order by first_entry desc limit ?";
    return this.#rows.all<CopyRow>(query, number, limit);
  }

  /** Those with entries from `first` to `last`, the newest first. */
  filesWithin(first: number, last: number, limit: number): CopyRow[] {
    const query = `select * from copies where first_entry <= ? and last_entry >= ? and stored = 1
      and first_entry >= (select coalesce(max(first_entry), 0) from copies where first_entry <= ?)
      order by first_entry desc limit ?`;
    return this.#rows.all<CopyRow>(query, last, first, first, limit);
  }

  /** How many stored files have only entries before this number. */
  countBefore(number: number): number {
    const query = "select count(*) as n from copies where stored = 1 and last_entry < ?";
    return this.#rows.one<{ n: number }>(query, number)?.n ?? 0;
  }

  /** The first month that is over, has all its copies, and is not closed; when it is closed is kept by the caller's transaction. */
  monthToClose(now: number): ClosedMonth | null {
    const row = this.#rows.one<MonthRow>("select * from months where sha256 is null order by month limit 1");
    if (row === null || endOfMonth(row.month) > now || this.last() < row.last_entry) return null;
    const closed_at = row.closed_at ?? now;
    this.#rows.set("months", { month: row.month }, { closed_at });
    return this.closed({ ...row, closed_at });
  }

  /** What its statement says; made again, the same. */
  closed(row: MonthRow): ClosedMonth {
    const query = "select sha256 from months where month < ? order by month desc limit 1";
    const previous = this.#rows.one<{ sha256: string | null }>(query, row.month)?.sha256 ?? "";
    const files = this.files(row).reduce((hash, { sha256 }) => sha256Hex(`${hash}${sha256}`), previous);
    const { sha256: _, closed_at, ...state } = monthStateOf(row);
    const sha256 = sha256Hex(canonicalJson({ ...state, accounts: { ...state.accounts }, files }));
    const said = { ...state, previous: previous === "" ? null : previous, files, sha256, closed_at: closed_at ?? 0 };
    return { state: said, text: JSON.stringify(said) };
  }

  noteClosed(month: string, sha256: string): void {
    this.#rows.set("months", { month }, { sha256 });
  }

  /** Whether entries of closed months are still here. */
  leaving(): boolean {
    return this.#rows.one("select 1 from entries where number <= ? limit 1", this.#lastClosed()) !== null;
  }

  /** The next thousand entries of closed months leave. */
  dropSlice(): void {
    const some = "select number from entries where number <= ? order by number limit ?";
    this.#rows.all(`delete from entries where number in (${some})`, this.#lastClosed(), LIMITS.sliceRows);
  }

  textOf({ first_entry, last_entry }: Pick<CopyRow, "first_entry" | "last_entry">): string {
    const entries = this.#entries.from(first_entry, last_entry, ENTRIES_A_FILE);
    return entries.map((entry) => `${JSON.stringify(entryOf(entry))}\n`).join("");
  }

  /** The only file that may not be stored yet. */
  #newest(): CopyRow | null {
    return this.#rows.one<CopyRow>("select * from copies order by first_entry desc limit 1");
  }

  #lastClosed(): number {
    const query = "select max(last_entry) as last from months where sha256 is not null";
    return this.#rows.one<{ last: number | null }>(query)?.last ?? 0;
  }

  #nextRange(): Range | null {
    const first_entry = this.last() + 1;
    const query = "select * from months where first_entry <= ? and last_entry >= ?";
    const month = this.#rows.one<MonthRow>(query, first_entry, first_entry);
    if (month === null) return null;
    return { first_entry, last_entry: Math.min(month.last_entry, first_entry + ENTRIES_A_FILE - 1), month };
  }

  /** At once where the file is full or its month is over, or it is decided on. */
  #dueAt({ first_entry, last_entry, month }: Range, now: number): number {
    const decided = this.#newest()?.stored === 0;
    const isWhole = last_entry - first_entry + 1 === ENTRIES_A_FILE || month.month < monthOf(now);
    if (decided || isWhole) return now;
    return (this.behindSince() ?? now) + COPY_WAIT_MS;
  }
}

interface Range {
  readonly first_entry: number;
  readonly last_entry: number;
  readonly month: MonthRow;
}

export function monthStateOf(row: MonthRow): MonthState {
  const { month, first_entry, last_entry, opening_micros, closing_micros, sha256, closed_at } = row;
  const entries = last_entry - first_entry + 1;
  const accounts: Record<string, number> = JSON.parse(row.accounts);
  return { month, first_entry, last_entry, entries, opening_micros, closing_micros, accounts, sha256, closed_at };
}
