/** Verifies the ledger: recomputes everything from the entries and reports every difference. Changes nothing. */
import type { LedgerDifference } from "../rpc.ts";
import { BALANCE, type MonthRow, type Sums, sumLines } from "./entries.ts";
import type { Ledger } from "./ledger.ts";

const PAGE = 1000;
/** The most differences reported of one kind. */
const MOST_LISTED = 100;

export class Differences {
  readonly all: LedgerDifference[] = [];

  add(
    what: string,
    expected: number | string | null,
    actual: number | string | null,
    entry: number | null = null,
  ): void {
    if (expected === actual) return;
    if (this.all.filter((one) => one.what === what).length < MOST_LISTED)
      this.all.push({ what, entry, expected, actual });
  }
}

/** The sums and number of all entries. */
export interface Recomputed {
  readonly accounts: Sums;
  readonly entries: number;
}

/** Recomputes balances and months from the entries in the object and the sums of archived entries. */
export function recomputeLedger(ledger: Ledger, found: Differences): Recomputed {
  const months = ledger.rows.all<MonthRow>("select * from months order by month");
  const accounts: Sums = new Map();
  const oldest = ledger.entries.firstNumber();
  const archived = ledger.archive.sums();
  found.add("number of archived entries", oldest - 1, ledger.archive.count());
  let next = 1;
  let balance = 0;
  for (const month of months) {
    found.add(`first entry of ${month.month}`, next, month.first_entry);
    found.add(`opening balance of ${month.month}`, balance, month.opening_micros);
    const isHere = month.last_entry >= oldest;
    const sums = isHere ? sumEntries(ledger, month, oldest, found) : parsedSums(month);
    // If the oldest month is partly archived: the archived sums minus the earlier months give its archived part.
    if (isHere) move(archived, sums, 1);
    compareSums(month, sums, found);
    if (isHere) archived.clear();
    else move(sums, archived, -1);
    move(sums, accounts, 1);
    balance = accounts.get(BALANCE) ?? 0;
    found.add(`closing balance of ${month.month}`, balance, month.closing_micros);
    next = month.last_entry + 1;
  }
  for (const [name, micros] of archived) found.add(`archived ${name}`, 0, micros);
  const kept = ledger.entries.accounts();
  for (const name of new Set([...accounts.keys(), ...kept.keys()])) {
    found.add(`account ${name}`, accounts.get(name) ?? 0, kept.get(name) ?? 0);
  }
  found.add(
    "sum of all accounts",
    0,
    [...kept.values()].reduce((sum, micros) => sum + micros, 0),
  );
  const beyond = ledger.rows.one<{ n: number }>("select count(*) as n from entries where number >= ?", next)?.n ?? 0;
  found.add("entries beyond the last month", 0, beyond);
  verifySources(ledger, found);
  return { accounts, entries: next - 1 };
}

/** Each source must point to its entry, as long as the entry is not archived. */
function verifySources({ rows }: Ledger, found: Differences): void {
  const lost = rows.all<{ number: number; source_id: string }>(
    `select s.number, s.source_id from sources s where s.number >= (select min(number) from entries)
      and not exists (select 1 from entries e where e.number = s.number and e.source_id = s.source_id
        and e.kind = s.kind and e.period = s.period) limit 100`,
  );
  for (const { number, source_id } of lost) found.add("source of an entry", source_id, null, number);
}

function move(from: Sums, to: Sums, sign: 1 | -1): void {
  for (const [name, micros] of from) to.set(name, (to.get(name) ?? 0) + sign * micros);
}

function sumEntries({ entries }: Ledger, month: MonthRow, oldest: number, found: Differences): Sums {
  const sums: Sums = new Map();
  let expected = Math.max(month.first_entry, oldest);
  for (;;) {
    const page = entries.from(expected, month.last_entry, PAGE);
    for (const entry of page) {
      found.add("number of an entry", expected, entry.number, entry.number);
      expected = entry.number + 1;
      found.add("sum of the lines of an entry", 0, sumLines(entry, sums), entry.number);
    }
    if (page.length < PAGE) break;
  }
  found.add(`last entry of ${month.month}`, month.last_entry, expected - 1);
  return sums;
}

function parsedSums({ accounts }: MonthRow): Sums {
  const parsed: Record<string, number> = JSON.parse(accounts);
  return new Map(Object.entries(parsed));
}

function compareSums(month: MonthRow, sums: ReadonlyMap<string, number>, found: Differences): void {
  const kept = parsedSums(month);
  for (const name of new Set([...sums.keys(), ...kept.keys()])) {
    found.add(`${name} in ${month.month}`, sums.get(name) ?? 0, kept.get(name) ?? 0);
  }
}
