/**
 * The ledger of an organisation: what its runs are charged, what it pays in, and what is reserved. Each operation is
 * one transaction of the object's SQLite, without an await; `account-ledger.ts` does everything else.
 *
 * Invariants. The items of a run are taken in order, each once: the journal entry, the balances, the usage and the
 * cursor are written together. What is posted once is never posted again. An organisation without activity has no rows.
 */
import type { ChargeLines } from "../../contract/money.ts";
import { Rows } from "../../kernel/kit/rows.ts";
import type { GrantedReservation } from "../../kernel/run/schema.ts";
import type {
  Posting,
  PostReply,
  ReservationAsk,
  RunFacts,
  SettledItem,
  SettleOrder,
  SettleReply,
  Stream,
} from "../rpc.ts";
import { Archive } from "./archive.ts";
import { Spending, type Terms } from "./budgets.ts";
import { BALANCE, Entries, type EntryLine, entryOf, type NewEntry } from "./entries.ts";
import { areKept, type LedgerStorage, makeLedger, monthOf } from "./ledger-schema.ts";
import { type Means, RESERVATION_LEASE_MS, Reservations } from "./reservations.ts";
import { Usage } from "./usage.ts";

const OWNER = "org_id";
const STREAMS: readonly Stream[] = ["ends", "pushes"];
/** The most items taken from one order; the next order brings the rest. */
export const ITEMS_AT_ONCE = 1000;

export class Ledger {
  readonly rows: Rows;
  readonly entries: Entries;
  readonly spending: Spending;
  readonly reservations: Reservations;
  readonly usage: Usage;
  readonly archive: Archive;
  readonly #storage: LedgerStorage;
  #kept = false;
  #made = false;
  #owner: string | null = null;

  constructor(storage: LedgerStorage, buckets?: number) {
    this.#storage = storage;
    this.rows = new Rows(storage.sql);
    this.entries = new Entries(this.rows);
    this.spending = new Spending(this.rows);
    this.reservations = new Reservations(this.rows, this.spending);
    this.usage = new Usage(this.rows, buckets);
    this.archive = new Archive(this.rows, this.entries);
  }

  /** Whether anything was ever written here. */
  get areKept(): boolean {
    if (this.#kept) return true;
    this.#kept = areKept(this.rows);
    // The tables may come from an earlier release.
    if (this.#kept) this.#make();
    return this.#kept;
  }

  /** Writes everything in `write` or nothing, and creates the tables if necessary. */
  write<T>(write: () => T): T {
    this.#make();
    this.#kept = true;
    return this.#storage.transactionSync(write);
  }

  #make(): void {
    if (!this.#made) makeLedger(this.#storage);
    this.#made = true;
  }

  /** `terms` null: they are currently unknown. Usage is recorded anyway, and nothing more is reserved. */
  settle({ run, items, reservation, least = 0 }: SettleOrder, terms: Terms | null, now: number): SettleReply {
    return this.#writeFor(run.scope.orgId, () => {
      let left = ITEMS_AT_ONCE;
      let charged = 0;
      const settled = { ends: 0, pushes: 0 };
      for (const stream of STREAMS) {
        const taken = this.#takeStream(run, stream, (items[stream] ?? []).slice(0, LONGEST), left, now);
        left -= taken.items;
        charged += taken.charged;
        settled[stream] = taken.cursor;
      }
      const means = terms === null ? null : this.#means(terms, now);
      if (means !== null && charged > 0) this.#watch(means, run.scope.projectId, run.payer);
      return { settled, reservation: this.#reservationAfter(run, { reservation, least }, charged, means, now) };
    });
  }

  reserve({ run, micros }: ReservationAsk, terms: Terms, now: number): GrantedReservation {
    return this.#writeFor(run.scope.orgId, () =>
      this.reservations.begin(run, checked(micros), this.#means(terms, now)),
    );
  }

  post(posting: Posting, terms: Terms | null, now: number): PostReply {
    const { kind, source_id, period, project_id } = posting;
    return this.#writeFor(posting.orgId, () => {
      const known = this.rows.one<{ number: number | null }>(
        "select number from sources where source_id = ? and kind = ? and period = ?",
        ...[source_id, kind, period],
      );
      if (known === null) this.#enter(posting, terms, now);
      const found = this.entries.find(kind, source_id, period);
      if (known === null && posting.use !== undefined) {
        const bucket = { project_id: project_id ?? "", payer: "", environment: "", model: "", kind: "storage" };
        this.usage.add(bucket, [posting.use], [chargesOf(posting)], this.entries.timeFrom(now));
      }
      const entry = found === null ? null : entryOf(found);
      return { posted: known === null, entry, balance_micros: this.entries.balance() };
    });
  }

  /** What grants depend on; null while the terms are unknown. */
  means(terms: Terms | null, now: number): Means | null {
    return terms === null || !this.areKept ? null : this.#means(terms, now);
  }

  /** The month of anything that is posted now. */
  month(now: number): string {
    return monthOf(this.entries.timeFrom(now));
  }

  cursor(runId: string, stream: Stream): CursorRow | null {
    const query = "select n, first_entry, last_entry from cursors where run_id = ? and stream = ?";
    return this.rows.one<CursorRow>(query, runId, stream);
  }

  /** The organisation that owns the ledger. Call only if `areKept`. */
  owner(): string {
    this.#owner ??= this.fact<string>(OWNER);
    if (this.#owner === null) throw new Error("the ledger does not name its organisation");
    return this.#owner;
  }

  /** A value stored under a name, as JSON. Call only if `areKept`. */
  fact<Value>(name: string): Value | null {
    const row = this.rows.one<{ value: string }>("select value from facts where name = ?", name);
    return row === null ? null : JSON.parse(row.value);
  }

  keepFact(name: string, value: unknown): void {
    this.rows.insert("facts", { name, value: JSON.stringify(value) }, "replace");
  }

  #writeFor<T>(orgId: string, write: () => T): T {
    return this.write(() => {
      if (this.#owner === null) this.#owner = this.fact<string>(OWNER);
      if (this.#owner === null) this.keepFact(OWNER, orgId);
      return write();
    });
  }

  #means(terms: Terms, now: number): Means {
    return { terms, balance: this.entries.balance(), month: this.month(now), now };
  }

  #takeStream(run: RunFacts, stream: Stream, items: readonly SettledItem[], limit: number, now: number) {
    const before = this.cursor(run.run_id, stream);
    const { fresh, cursor } = nextItems(items, before?.n ?? 0, limit);
    if (fresh.length === 0) return { items: 0, charged: 0, cursor };
    const unknown = this.#notEntered(fresh);
    const charges = unknown.map((item) => (run.price_version === null ? {} : item.lines));
    const made = unknown.flatMap((item, index) => entryOfItem(run, item, charges[index] ?? {}));
    const numbers = this.entries.add(made, now);
    const charged = charges.reduce((sum, lines) => sum + sumOf(lines), 0);
    const { project_id, payer, bucket } = payerOf(run);
    this.spending.add(this.month(now), { project_id, payer }, charged);
    const uses = unknown.map(({ use }) => use);
    this.usage.add(bucket, uses, charges, this.entries.timeFrom(now));
    const first_entry = before?.first_entry ?? numbers?.first ?? null;
    const last_entry = numbers?.last ?? before?.last_entry ?? null;
    const row = { run_id: run.run_id, stream, n: cursor, first_entry, last_entry };
    this.rows.insert("cursors", row, "replace");
    return { items: fresh.length, charged, cursor };
  }

  /** Skips a source that already has an entry, whatever its number. */
  #notEntered(items: readonly SettledItem[]): SettledItem[] {
    const seen = new Set<string>();
    return items.filter(({ kind, source_id }) => {
      const name = `${kind} ${source_id}`;
      const isNew = !seen.has(name) && this.entries.find(kind, source_id, "") === null;
      seen.add(name);
      return isNew;
    });
  }

  #reservationAfter(
    run: RunFacts,
    { reservation, least }: Required<Pick<SettleOrder, "reservation" | "least">>,
    charged: number,
    means: Means | null,
    now: number,
  ): GrantedReservation | null {
    if (run.price_version === null) return reservation === null ? null : granted(checked(reservation), now);
    if (reservation === 0) {
      this.reservations.release(run.run_id);
      return granted(0, now);
    }
    if (reservation === null || means === null) return this.reservations.use(run, charged, now);
    return this.reservations.ask(run, { asked: checked(reservation), least: checked(least) }, means);
  }

  #enter(posting: Posting, terms: Terms | null, now: number): void {
    const { kind, source_id, period, project_id, note, price_version = null } = posting;
    const lines = linesOf(posting);
    const of = { kind, source_id, period, project_id, run_id: null, payer: null, price_version, lines, note };
    const numbers = this.entries.add(lines.length === 0 ? [] : [of], now);
    this.rows.insert("sources", { source_id, kind, period, number: numbers?.first ?? null });
    if (kind !== "storage" || numbers === null) return;
    this.spending.add(this.month(now), { project_id, payer: null }, sumOf(chargesOf(posting)));
    if (terms !== null) this.#watch(this.#means(terms, now), project_id, null);
  }

  #watch({ terms, month, now }: Means, project_id: string | null, payer: string | null): void {
    this.spending.watch(month, terms.budgets, { project_id, payer }, now);
  }
}

export type CursorRow = { n: number; first_entry: number | null; last_entry: number | null };

/** The most items of a stream in one order that are looked at. */
const LONGEST = 10 * ITEMS_AT_ONCE;

/** The items after the cursor, up to a gap. */
function nextItems(items: readonly SettledItem[], cursor: number, limit: number) {
  const fresh: SettledItem[] = [];
  let last = cursor;
  for (const item of items) {
    if (item.n <= last) continue;
    if (item.n !== last + 1 || fresh.length === limit) break;
    fresh.push(item);
    last = item.n;
  }
  return { fresh, cursor: last };
}

/** No entry if the item costs nothing. */
function entryOfItem(run: RunFacts, { kind, source_id }: SettledItem, charges: ChargeLines): NewEntry[] {
  const lines = chargeLines(charges);
  if (lines.length === 0) return [];
  const { payer, price_version, run_id } = run;
  const project_id = run.scope.projectId;
  return [{ kind, source_id, period: "", project_id, run_id, payer, price_version, lines, note: null }];
}

function payerOf({ scope, payer, environment, model, kind }: RunFacts) {
  const project_id = scope.projectId;
  return { project_id, payer, bucket: { project_id, payer, environment, model, kind } };
}

function chargesOf({ kind, lines = {}, price_version = null }: Posting): ChargeLines {
  return kind === "storage" && price_version !== null ? lines : {};
}

function linesOf(posting: Posting): EntryLine[] {
  if (posting.kind === "storage") return chargeLines(chargesOf(posting));
  const { amount_micros, against } = posting;
  if (against === BALANCE) throw new RangeError("the balance cannot be its own counter account");
  return [
    { account: BALANCE, micros: amount_micros },
    { account: against, micros: -amount_micros },
  ];
}

function chargeLines(charges: ChargeLines): EntryLine[] {
  const revenue = Object.entries(charges).flatMap(([line, micros]) => {
    return checked(micros) === 0 ? [] : [{ account: `revenue/${line}`, micros }];
  });
  if (revenue.length === 0) return [];
  return [{ account: BALANCE, micros: -sumOf(charges) }, ...revenue];
}

function sumOf(charges: ChargeLines): number {
  return Object.values(charges).reduce((sum, micros) => sum + micros, 0);
}

/** The grant for a run that is charged nothing, or asks for nothing. */
export function granted(micros: number, now: number): GrantedReservation {
  return { micros, until: now + RESERVATION_LEASE_MS, short: null };
}

function checked(micros: number): number {
  if (!Number.isSafeInteger(micros) || micros < 0)
    throw new RangeError(`${micros} is not a valid amount in micro-dollars`);
  return micros;
}

/** The reply when the organisation is deleted: everything counts as settled. */
export function allTaken({ items, reservation }: SettleOrder, now: number): SettleReply {
  const lastOf = (stream: Stream) => items[stream]?.at(-1)?.n ?? 0;
  return {
    settled: { ends: lastOf("ends"), pushes: lastOf("pushes") },
    reservation: reservation === null ? null : granted(0, now),
  };
}

export function noneGranted(now: number): GrantedReservation {
  return { micros: 0, until: now, short: { by: "balance", budget_id: null, shortfall_micros: 0, reason: GONE } };
}

const GONE = "the organisation is being deleted";
