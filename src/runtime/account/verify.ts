/**
 * Whether the books hold: everything that follows from the entries is made again from them, and compared. Whatever
 * differs is named, and nothing is changed.
 */
import type { LedgerDifference } from "../contract/money-wire.ts";
import type { Books } from "./books.ts";
import { BALANCE, type EntryLine, type MonthRow, type StoredEntry } from "./entries.ts";

const PAGE = 1000;
/** Of one kind of difference; more of it says nothing more. */
const TOLD = 100;

export class Differences {
  readonly all: LedgerDifference[] = [];

  add(
    what: string,
    expected: number | string | null,
    actual: number | string | null,
    entry: number | null = null,
  ): void {
    if (expected === actual) return;
    if (this.all.filter((one) => one.what === what).length < TOLD) this.all.push({ what, entry, expected, actual });
  }
}

/** What entries come to: of a month, and of all. */
export interface Recomputed {
  readonly accounts: Map<string, number>;
  readonly entries: number;
}

/** Recomputes balances, months and what months spent from the entries that are here, and from closed months. */
export function verifyBooks(books: Books, found: Differences): Recomputed {
  const months = books.rows.all<MonthRow>("select * from months order by month");
  const accounts = new Map<string, number>();
  let next = 1;
  let balance = 0;
  for (const month of months) {
    found.add(`first entry of ${month.month}`, next, month.first_entry);
    found.add(`opening balance of ${month.month}`, balance, month.opening_micros);
    const sums = month.sha256 === null ? sumEntries(books, month, found) : parsedSums(month);
    compareSums(month, sums, found);
    for (const [name, micros] of sums) accounts.set(name, (accounts.get(name) ?? 0) + micros);
    balance = accounts.get(BALANCE) ?? 0;
    found.add(`closing balance of ${month.month}`, balance, month.closing_micros);
    next = month.last_entry + 1;
  }
  const kept = books.entries.accounts();
  for (const name of new Set([...accounts.keys(), ...kept.keys()])) {
    found.add(`account ${name}`, accounts.get(name) ?? 0, kept.get(name) ?? 0);
  }
  found.add(
    "sum of all accounts",
    0,
    [...kept.values()].reduce((sum, micros) => sum + micros, 0),
  );
  const beyond = books.rows.one<{ n: number }>("select count(*) as n from entries where number >= ?", next)?.n ?? 0;
  found.add("entries beyond the last month", 0, beyond);
  verifySources(books, found);
  return { accounts, entries: next - 1 };
}

/** What is posted once points at its entry, as long as that is here. */
function verifySources({ rows }: Books, found: Differences): void {
  const lost = rows.all<{ number: number; source_id: string }>(
    `select s.number, s.source_id from sources s where s.number >= (select min(number) from entries)
      and not exists (select 1 from entries e where e.number = s.number and e.source_id = s.source_id
        and e.kind = s.kind and e.period = s.period) limit 100`,
  );
  for (const { number, source_id } of lost) found.add("source of an entry", source_id, null, number);
}

function sumEntries({ entries }: Books, month: MonthRow, found: Differences): Map<string, number> {
  const sums = new Map<string, number>();
  let expected = month.first_entry;
  for (;;) {
    const page = entries.from(expected, month.last_entry, PAGE);
    for (const entry of page) {
      found.add("number of an entry", expected, entry.number, entry.number);
      expected = entry.number + 1;
      addLines(entry, sums, found);
    }
    if (page.length < PAGE) break;
  }
  found.add(`last entry of ${month.month}`, month.last_entry, expected - 1);
  return sums;
}

function addLines(entry: StoredEntry, sums: Map<string, number>, found: Differences): void {
  const lines: EntryLine[] = JSON.parse(entry.lines);
  found.add(
    "sum of the lines of an entry",
    0,
    lines.reduce((sum, { micros }) => sum + micros, 0),
    entry.number,
  );
  for (const { account, micros } of lines) sums.set(account, (sums.get(account) ?? 0) + micros);
}

function parsedSums({ accounts }: MonthRow): Map<string, number> {
  const parsed: Record<string, number> = JSON.parse(accounts);
  return new Map(Object.entries(parsed));
}

function compareSums(month: MonthRow, sums: ReadonlyMap<string, number>, found: Differences): void {
  const kept = parsedSums(month);
  for (const name of new Set([...sums.keys(), ...kept.keys()])) {
    found.add(`${name} in ${month.month}`, sums.get(name) ?? 0, kept.get(name) ?? 0);
  }
}
