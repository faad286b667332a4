/**
 * Moves the oldest journal entries to files in the object store. An object's storage is bounded and the ledger is not,
 * so the object keeps the newest million entries and archives older ones, a thousand entries per file.
 *
 * Invariants. An entry never changes and files follow each other without gaps, so a file that is written again after a
 * kill has the same key and the same bytes. Entries are deleted only after their file is stored, in one transaction
 * with the row that names the file and with the sums of all archived entries.
 */

import type { Rows } from "../../kernel/kit/rows.ts";
import { type Entries, entryOf, type StoredEntry, type Sums, sumLines } from "./entries.ts";
import { monthOf } from "./ledger-schema.ts";

export interface ArchiveBounds {
  /** How many of the newest entries are never archived. */
  readonly kept: number;
  readonly entriesAFile: number;
}

export const ARCHIVE_BOUNDS: ArchiveBounds = { kept: 1_000_000, entriesAFile: 1000 };
const SUMS = "archived";

// A type and not an interface: SQLite rows must be records with string keys.
export type ArchivedFile = { first_entry: number; last_entry: number; month: string };

export interface NewFile {
  readonly file: ArchivedFile;
  readonly entries: readonly StoredEntry[];
}

export class Archive {
  readonly #rows: Rows;
  readonly #entries: Entries;

  constructor(rows: Rows, entries: Entries) {
    this.#rows = rows;
    this.#entries = entries;
  }

  isDue({ kept, entriesAFile }: ArchiveBounds): boolean {
    return this.#entries.lastNumber() - this.#entries.firstNumber() + 1 >= kept + entriesAFile;
  }

  /** The next file to write, or null. */
  next(bounds: ArchiveBounds): NewFile | null {
    if (!this.isDue(bounds)) return null;
    const first_entry = this.#entries.firstNumber();
    const last_entry = first_entry + bounds.entriesAFile - 1;
    const entries = this.#entries.from(first_entry, last_entry, bounds.entriesAFile);
    return { file: { first_entry, last_entry, month: monthOf(entries[0]?.at ?? 0) }, entries };
  }

  /** The file is stored: deletes its entries. */
  noteStored({ file, entries }: NewFile): void {
    const { first_entry, last_entry } = file;
    const sums = this.sums();
    for (const entry of entries) sumLines(entry, sums);
    this.#rows.insert("archive", file);
    this.#rows.insert("facts", { name: SUMS, value: JSON.stringify(Object.fromEntries(sums)) }, "replace");
    this.#rows.all("delete from entries where number between ? and ?", first_entry, last_entry);
  }

  /** The change of each account by all archived entries. */
  sums(): Sums {
    const row = this.#rows.one<{ value: string }>("select value from facts where name = ?", SUMS);
    const kept: Record<string, number> = row === null ? {} : JSON.parse(row.value);
    return new Map(Object.entries(kept));
  }

  /** The number of archived entries. */
  count(): number {
    const query = "select coalesce(sum(last_entry - first_entry + 1), 0) as n from archive";
    return this.#rows.one<{ n: number }>(query)?.n ?? 0;
  }

  /** Files with entries below this number, the newest first. */
  filesBefore(number: number, limit: number): ArchivedFile[] {
    const query = "select * from archive where first_entry < ? order by first_entry desc limit ?";
    return this.#rows.all<ArchivedFile>(query, number, limit);
  }

  /** Files with entries from `first` to `last`, the newest first. */
  filesWithin(first: number, last: number, limit: number): ArchivedFile[] {
    const query = `select * from archive where first_entry <= ? and last_entry >= ?
      and first_entry >= (select coalesce(max(first_entry), 0) from archive where first_entry <= ?)
      order by first_entry desc limit ?`;
    return this.#rows.all<ArchivedFile>(query, last, first, first, limit);
  }
}

export function textOf(entries: readonly StoredEntry[]): string {
  return entries.map((entry) => `${JSON.stringify(entryOf(entry))}\n`).join("");
}
