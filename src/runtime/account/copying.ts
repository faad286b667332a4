/**
 * Carries the copies of the books out: entries and closed months to the object store, the balance, the use of hours and
 * closed months to the database. A slice of it is done by each alarm.
 *
 * Invariants. What is written is decided on first, so that a kill at any point writes the same again. Nothing here
 * changes the books but marks of what is copied, and entries of closed months, which leave.
 */

import { writeLedgerCopy, writeLedgerMonth, writeUsageHours } from "../../db/ledger.ts";
import type { LedgerCopyRow } from "../../db/ledger-schema.ts";
import { ledgerFileKey, ledgerMonthKey } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Books } from "./books.ts";
import { type ClosedMonth, COPY_WAIT_MS } from "./copies.ts";

/** In one alarm. */
const FILES_A_SLICE = 10;
const USAGE_BATCHES_A_SLICE = 10;
const USAGE_ROWS_A_BATCH = 50;
/** What the database was told last; it may not have heard it while that is not sure. */
const TOLD = "told";

type Told = Omit<LedgerCopyRow, "org_id" | "copied_at">;
type Telling = Told & { readonly at: number; readonly sure: boolean };

export class Copying {
  readonly #env: Env;
  readonly #books: Books;

  constructor(env: Env, books: Books) {
    this.#env = env;
    this.#books = books;
  }

  /** Throws what a store throws; then nothing is marked, and it is to be done again. */
  async slice(subrequests: Subrequests, now: number): Promise<void> {
    const orgId = this.#books.owner();
    for (let at = 0; at < FILES_A_SLICE; at += 1) {
      if (!(await this.#nextFile(subrequests, orgId, now))) break;
    }
    if (this.#books.copies.leaving()) this.#books.write(() => this.#books.copies.dropSlice());
    for (let at = 0; at < USAGE_BATCHES_A_SLICE; at += 1) {
      if (!(await this.#nextUsage(subrequests, orgId, now))) break;
    }
    await this.#tell(subrequests, orgId, now);
  }

  nextAt(now: number): number | null {
    const since = this.#books.usage.waitsSince();
    const told = this.#books.fact<Telling>(TOLD);
    const due = [
      this.#books.copies.nextAt(now),
      since === null ? null : since + COPY_WAIT_MS,
      this.#isTold(now) ? null : (told?.at ?? now - COPY_WAIT_MS) + COPY_WAIT_MS,
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** What the database has heard last; null: nothing, or nobody knows. */
  heard(): Told | null {
    const told = this.#books.fact<Telling>(TOLD);
    return told?.sure === true ? told : null;
  }

  /** A month that is to be closed, or a file of entries. False: there is neither. */
  async #nextFile(subrequests: Subrequests, orgId: string, now: number): Promise<boolean> {
    const { copies } = this.#books;
    const month = this.#books.write(() => copies.monthToClose(now));
    if (month !== null) {
      await this.#close(subrequests, orgId, month);
      return true;
    }
    const file = this.#books.write(() => copies.decide(now));
    if (file === null) return false;
    await subrequests.fetch(() => this.#env.STORE.put(ledgerFileKey(orgId, file), file.text));
    this.#books.write(() => copies.noteStored(file));
    return true;
  }

  async #close(subrequests: Subrequests, orgId: string, { state, text }: ClosedMonth): Promise<void> {
    const { entries: _, ...row } = state;
    await subrequests.fetch(() => this.#env.STORE.put(ledgerMonthKey(orgId, state.month), text));
    await subrequests.fetch(() => writeLedgerMonth(this.#env.DB, orgId, rowOfMonth(row)));
    this.#books.write(() => this.#books.copies.noteClosed(state.month, state.sha256));
  }

  async #nextUsage(subrequests: Subrequests, orgId: string, now: number): Promise<boolean> {
    const since = this.#books.usage.waitsSince();
    if (since === null || since + COPY_WAIT_MS > now) return false;
    const waiting = this.#books.usage.toCopy(USAGE_ROWS_A_BATCH);
    await subrequests.fetch(() =>
      writeUsageHours(
        this.#env.DB,
        orgId,
        waiting.map(({ row }) => row),
      ),
    );
    this.#books.write(() => this.#books.usage.noteCopied(waiting));
    return waiting.length === USAGE_ROWS_A_BATCH;
  }

  async #tell(subrequests: Subrequests, orgId: string, now: number): Promise<void> {
    if (this.#isTold(now)) return;
    const row = this.#toTell(now);
    const before = this.#books.fact<Telling>(TOLD)?.at ?? now - COPY_WAIT_MS;
    this.#books.write(() => this.#books.keepFact(TOLD, { ...row, at: before, sure: false }));
    await subrequests.fetch(() => writeLedgerCopy(this.#env.DB, orgId, { ...row, copied_at: now }));
    this.#books.write(() => this.#books.keepFact(TOLD, { ...row, at: now, sure: true }));
  }

  #isTold(now: number): boolean {
    const row = this.#toTell(now);
    const told = this.#books.fact<Telling>(TOLD);
    if (told === null) return row.last_entry === 0 && row.behind_since === null && row.reserved_micros === 0;
    const names = ["balance_micros", "reserved_micros", "last_entry", "behind_since"] as const;
    return told.sure && names.every((name) => told[name] === row[name]);
  }

  #toTell(now: number): Told {
    const { entries, holds, copies } = this.#books;
    return {
      balance_micros: entries.balance(),
      reserved_micros: holds.reserved(now),
      last_entry: copies.last(),
      behind_since: copies.behindSince(),
    };
  }
}

function rowOfMonth({
  month,
  first_entry,
  last_entry,
  opening_micros,
  closing_micros,
  accounts,
  sha256,
  closed_at,
}: Omit<ClosedMonth["state"], "entries">) {
  return { month, first_entry, last_entry, opening_micros, closing_micros, accounts, sha256, closed_at };
}
