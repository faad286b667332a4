/**
 * The ledger's journal entries and account balances.
 *
 * Invariants. The lines of an entry add up to 0. An entry, the balances, the sums of its month and its spending of
 * budgets are written in one transaction, which the caller opens. Entries are numbered from 1 without gaps, and times
 * never go backwards. Each kind, source and period is entered once.
 */
import type { EntryKind, LedgerEntry } from "../../contract/money.ts";
import type { Rows } from "../../kernel/kit/rows.ts";
import type { EntriesQuery, MonthState } from "../rpc.ts";
import { endOfMonth, monthOf } from "./ledger-schema.ts";

export const BALANCE = "balance";

export interface EntryLine {
  readonly account: string;
  readonly micros: number;
}

export interface NewEntry {
  readonly kind: EntryKind;
  readonly source_id: string;
  readonly period: string;
  readonly project_id: string | null;
  readonly run_id: string | null;
  readonly payer: string | null;
  readonly price_version: string | null;
  readonly lines: readonly EntryLine[];
  readonly note: string | null;
}

// Types and not interfaces: SQLite rows must be records with string keys.
export type StoredEntry = Omit<NewEntry, "lines"> & { number: number; at: number; lines: string };

export type MonthRow = {
  month: string;
  first_entry: number;
  last_entry: number;
  last_at: number;
  opening_micros: number;
  closing_micros: number;
  /** JSON: the month's change of each account. */
  accounts: string;
  closed_at: number | null;
};

export class Entries {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Enters them and returns the first and last number. Throws for an invalid entry; then roll back. */
  add(entries: readonly NewEntry[], now: number): { readonly first: number; readonly last: number } | null {
    if (entries.length === 0) return null;
    const before = this.lastMonth();
    const at = this.timeFrom(now);
    const first = (before?.last_entry ?? 0) + 1;
    const sums = new Map<string, number>();
    for (const [index, { lines, ...entry }] of entries.entries()) {
      checkLines(lines);
      this.#rows.insert("entries", { number: first + index, at, ...entry, lines: JSON.stringify(lines) });
      for (const { account, micros } of lines) sums.set(account, (sums.get(account) ?? 0) + micros);
    }
    const last = first + entries.length - 1;
    for (const [name, micros] of sums) this.#move(name, micros);
    this.#noteMonth(before, { month: monthOf(at), first, last, at }, sums);
    return { first, last };
  }

  /** The time of anything that is posted now: not before the last posting, nor in a closed month. */
  timeFrom(now: number): number {
    const last = this.lastMonth();
    if (last === null) return now;
    return Math.max(now, last.last_at, last.closed_at === null ? 0 : endOfMonth(last.month));
  }

  balance(): number {
    return this.accounts().get(BALANCE) ?? 0;
  }

  accounts(): Map<string, number> {
    const rows = this.#rows.all<{ name: string; micros: number }>("select name, micros from accounts");
    return new Map(rows.map(({ name, micros }) => [name, micros]));
  }

  lastMonth(): MonthRow | null {
    return this.#rows.one<MonthRow>("select * from months order by month desc limit 1");
  }

  month(month: string): MonthRow | null {
    return this.#rows.one<MonthRow>("select * from months where month = ?", month);
  }

  /** Closed months before this one, the latest first; null: from the latest. */
  closedMonths(before: string | null, limit: number): MonthRow[] {
    const query = `select * from months where closed_at is not null and month < coalesce(?, '9999-99')
      order by month desc limit ?`;
    return this.#rows.all<MonthRow>(query, before, limit);
  }

  /** Closes months that are over: nothing more is posted to them. */
  closeMonths(now: number): void {
    const query = "update months set closed_at = ? where closed_at is null and month < ?";
    this.#rows.all(query, now, monthOf(now));
  }

  /** The end of the open month. */
  closesAt(): number | null {
    const query = "select month from months where closed_at is null order by month limit 1";
    const open = this.#rows.one<{ month: string }>(query);
    return open === null ? null : endOfMonth(open.month);
  }

  lastNumber(): number {
    return this.lastMonth()?.last_entry ?? 0;
  }

  /** The entry of a source; null if there is none, or it is archived. */
  find(kind: EntryKind, sourceId: string, period: string): StoredEntry | null {
    const query = "select * from entries where source_id = ? and kind = ? and period = ?";
    return this.#rows.one<StoredEntry>(query, sourceId, kind, period);
  }

  /** The newest first, without archived entries. */
  list({ before, limit, kind, run_id, source_id }: EntriesQuery): StoredEntry[] {
    const conditions = ["number < ?"];
    if (source_id !== null) conditions.push("source_id = ?");
    if (run_id !== null) conditions.push("run_id = ?");
    // Repeats the condition of the index, which leaves out rollouts.
    if (kind !== null) conditions.push(kind === "rollout" ? "kind = ?" : "kind = ? and kind <> 'rollout'");
    const given = [source_id, run_id, kind].filter((value) => value !== null);
    const query = `select * from entries where ${conditions.join(" and ")} order by number desc limit ?`;
    return this.#rows.all<StoredEntry>(query, before ?? Number.MAX_SAFE_INTEGER, ...given, limit);
  }

  /** The number of the oldest entry in the object; if there is none, the number of the next entry. */
  firstNumber(): number {
    const query = "select min(number) as number from entries";
    return this.#rows.one<{ number: number | null }>(query)?.number ?? this.lastNumber() + 1;
  }

  /** From `number` to `last`, at most `limit` entries. */
  from(number: number, last: number, limit: number): StoredEntry[] {
    const query = "select * from entries where number >= ? and number <= ? order by number limit ?";
    return this.#rows.all<StoredEntry>(query, number, last, limit);
  }

  /** The newest first, without archived entries. */
  ofSources(runId: string, sourceIds: readonly string[], before: number | null): StoredEntry[] {
    const query = `select * from entries where run_id = ? and source_id in (select value from json_each(?))
      and number < ? order by number desc`;
    return this.#rows.all<StoredEntry>(query, runId, JSON.stringify(sourceIds), before ?? Number.MAX_SAFE_INTEGER);
  }

  #move(name: string, micros: number): void {
    if (name.length === 0 || name.length > 100) throw new RangeError(`no account is called ${name.slice(0, 100)}`);
    const before = this.#rows.one<{ micros: number }>("select micros from accounts where name = ?", name)?.micros ?? 0;
    if (!Number.isSafeInteger(before + micros))
      throw new RangeError(`${name} has reached the largest amount that can be stored`);
    this.#rows.insert("accounts", { name, micros: before + micros }, "replace");
  }

  #noteMonth(
    before: MonthRow | null,
    { month, first, last, at }: { month: string; first: number; last: number; at: number },
    sums: ReadonlyMap<string, number>,
  ): void {
    const balance = this.balance();
    const known = before !== null && before.month === month ? before : null;
    const accounts: Record<string, number> = known === null ? {} : JSON.parse(known.accounts);
    for (const [name, micros] of sums) accounts[name] = (accounts[name] ?? 0) + micros;
    const now = { last_entry: last, last_at: at, closing_micros: balance, accounts: JSON.stringify(accounts) };
    if (known !== null) this.#rows.set("months", { month }, now);
    else {
      const opening_micros = balance - (sums.get(BALANCE) ?? 0);
      this.#rows.insert("months", { month, first_entry: first, opening_micros, ...now });
    }
  }
}

/** An entry as in the API and in archived files. */
export function entryOf(row: StoredEntry): LedgerEntry {
  const lines: EntryLine[] = JSON.parse(row.lines);
  const { number, kind, source_id, period, project_id, run_id, payer, price_version, note } = row;
  return {
    object: "ledger_entry",
    ...{ number, kind, source_id, period, posted_at: Math.floor(row.at / 1000), project_id, run_id, payer },
    ...{ price_version, amount_micros: amountOf(lines), lines, note },
  };
}

/** Micro-dollars by account. */
export type Sums = Map<string, number>;

/** Adds an entry's change of each account to `sums`, and returns the sum of its lines. */
export function sumLines({ lines }: Pick<StoredEntry, "lines">, sums: Sums): number {
  const parsed: EntryLine[] = JSON.parse(lines);
  for (const { account, micros } of parsed) sums.set(account, (sums.get(account) ?? 0) + micros);
  return parsed.reduce((sum, { micros }) => sum + micros, 0);
}

export function monthStateOf(row: MonthRow): MonthState {
  const { month, first_entry, last_entry, opening_micros, closing_micros, closed_at } = row;
  const accounts: Record<string, number> = JSON.parse(row.accounts);
  const entries = last_entry - first_entry + 1;
  return { month, first_entry, last_entry, entries, opening_micros, closing_micros, accounts, closed_at };
}

/** The change of the balance. */
export function amountOf(lines: readonly EntryLine[]): number {
  return lines.reduce((sum, { account, micros }) => (account === BALANCE ? sum + micros : sum), 0);
}

function checkLines(lines: readonly EntryLine[]): void {
  const whole = lines.every(({ micros }) => Number.isSafeInteger(micros));
  const sum = lines.reduce((total, { micros }) => total + micros, 0);
  if (!whole || sum !== 0) throw new RangeError(`the lines of an entry add up to ${sum}, not to 0`);
}
