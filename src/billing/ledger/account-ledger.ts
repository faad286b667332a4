/**
 * The ledger part of an organisation's object. It reads the organisation's billing terms, takes items from runs and the
 * API, notifies runs that wait for money, and does housekeeping (thresholds, months, the archive) from the object's
 * alarm. The ledger's transactions are in ledger.ts.
 *
 * Invariants. Usage is recorded even if everything else fails. Nothing is reserved while the terms are unknown. A step
 * of the alarm that fails is logged and retried, and does not delay the other steps.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { LedgerEntry } from "../../contract/money.ts";
import { notifyRuns } from "../../kernel/account/tell-runs.ts";
import { databaseOf } from "../../kernel/db/database.ts";
import { backoffMs } from "../../kernel/kit/backoff.ts";
import { logError } from "../../kernel/kit/log.ts";
import { Subrequests } from "../../kernel/kit/subrequests.ts";
import type { GrantedReservation } from "../../kernel/run/schema.ts";
import { readTerms } from "../queries/ledger.ts";
import type {
  BalanceState,
  BudgetState,
  EntriesPage,
  EntriesQuery,
  LedgerFindings,
  MonthState,
  Posting,
  PostReply,
  ReservationAsk,
  SettleOrder,
  SettleReply,
} from "../rpc.ts";
import { deliverNotice } from "./alerts.ts";
import { ARCHIVE_BOUNDS } from "./archive.ts";
import { archivedEntries, type Sought } from "./archived-entries.ts";
import { nameOf, type Terms } from "./budgets.ts";
import { archiveEntries, copyUsage, usageDueAt } from "./copying.ts";
import { BALANCE, entryOf, monthStateOf } from "./entries.ts";
import { granted, Ledger } from "./ledger.ts";
import { endOfMonth, monthOf } from "./ledger-schema.ts";
import { Differences, recomputeLedger } from "./verify.ts";

const TERMS_KEPT_MS = 5 * 60_000;
const TERMS = "terms";
const NOTICES_A_SLICE = 50;

/** The object that holds the ledger. */
type Holder = Pick<DurableObjectState, "storage" | "waitUntil">;

export class AccountLedger {
  readonly #ctx: Holder;
  readonly #env: Env;
  readonly #now: () => number;
  readonly #ledger: Ledger;
  /** Tests use smaller bounds. */
  archiveBounds = ARCHIVE_BOUNDS;
  /** When failed steps are retried, and how often they have failed. */
  #again: { readonly failures: number; readonly at: number } | null = null;
  /** Whether a copy to the stores is in progress. */
  isCopying = false;
  #terms: Terms | null | undefined;
  /** The terms as stored on disk. */
  #keptTerms: Terms | null | undefined;

  constructor(ctx: Holder, env: Env, now: () => number) {
    this.#ctx = ctx;
    this.#env = env;
    this.#now = now;
    this.#ledger = new Ledger(ctx.storage);
  }

  async settle(order: SettleOrder): Promise<SettleReply> {
    const terms = order.run.price_version === null ? null : await this.#termsIfKnown(order.run.scope.orgId);
    const reply = this.#ledger.settle(order, terms, this.#now());
    this.#keepTerms();
    return reply;
  }

  async reserve(ask: ReservationAsk): Promise<GrantedReservation> {
    if (ask.run.price_version === null) return granted(ask.micros, this.#now());
    const terms = await this.#readTerms(ask.run.scope.orgId);
    const grant = this.#ledger.reserve(ask, terms, this.#now());
    this.#keepTerms();
    return grant;
  }

  async post(posting: Posting): Promise<PostReply> {
    const terms = await this.#termsIfKnown(posting.orgId);
    const reply = this.#ledger.post(posting, terms, this.#now());
    this.#keepTerms();
    this.#notifyRuns();
    return reply;
  }

  async balance(orgId: string): Promise<BalanceState> {
    const { billing, credit_limit_micros } = await this.#readTerms(orgId);
    const agreed = { billing, credit_limit_micros };
    const { areKept, entries, reservations } = this.#ledger;
    if (!areKept) return { ...agreed, balance_micros: 0, reserved_micros: 0, entries: 0 };
    return {
      ...agreed,
      ...{ balance_micros: entries.balance(), reserved_micros: reservations.reserved(this.#now()) },
      entries: entries.lastNumber(),
    };
  }

  /** Includes archived entries. */
  async entries(query: EntriesQuery): Promise<EntriesPage> {
    if (!this.#ledger.areKept) return NO_ENTRIES;
    const { limit, kind, run_id, source_id } = query;
    // Reads one more than the limit, to see whether there are more.
    const here = this.#ledger.entries.list({ ...query, limit: limit + 1 }).map(entryOf);
    const source_ids = source_id === null ? null : [source_id];
    const sought = { before: query.before ?? NEWEST, kind, run_id, source_ids };
    const { entries, next } = await this.#withArchived(here, sought, limit + 1);
    const page = entries.slice(0, limit);
    return { entries: page, next: entries.length > limit ? (page.at(-1)?.number ?? null) : next };
  }

  async entriesOf(run_id: string, source_ids: readonly string[], before: number | null = null): Promise<EntriesPage> {
    if (!this.#ledger.areKept) return NO_ENTRIES;
    const here = this.#ledger.entries.ofSources(run_id, source_ids, before).map(entryOf);
    const sought = { before: before ?? NEWEST, kind: null, run_id, source_ids };
    const found = await this.#withArchived(here, sought, source_ids.length);
    return found.entries.length < source_ids.length ? found : { ...found, next: null };
  }

  /** If fewer than `most` entries are in the object, adds older ones from the archive. */
  async #withArchived(here: readonly LedgerEntry[], sought: Sought, most: number): Promise<EntriesPage> {
    const before = Math.min(this.#ledger.entries.firstNumber(), sought.before);
    if (here.length >= most || before <= 1) return { entries: here, next: null };
    const { entries, next } = await archivedEntries(this.#env, this.#ledger, { ...sought, before }, most - here.length);
    return { entries: [...here, ...entries], next };
  }

  month(month: string): MonthState | null {
    const row = this.#ledger.areKept ? this.#ledger.entries.month(month) : null;
    return row === null ? null : monthStateOf(row);
  }

  closedMonths(before: string | null, limit: number): MonthState[] {
    return this.#ledger.areKept ? this.#ledger.entries.closedMonths(before, limit).map(monthStateOf) : [];
  }

  async budgets(orgId: string): Promise<BudgetState[]> {
    const terms = await this.#readTerms(orgId);
    const now = this.#now();
    const means = this.#ledger.means(terms, now);
    if (means === null) return [];
    const { spending, reservations } = this.#ledger;
    const spent = spending.ofMonth(means.month);
    const crossed = spending.crossed(means.month);
    const held = reservations.reservedByName(now);
    return terms.budgets.map((budget) => {
      const name = nameOf(budget);
      const thresholds = crossed.get(budget.id) ?? [];
      const [spent_micros, reserved_micros] = [spent.get(name) ?? 0, held.get(name) ?? 0];
      return { budget_id: budget.id, spent_micros, reserved_micros, thresholds };
    });
  }

  verify(): LedgerFindings {
    if (!this.#ledger.areKept) return { entries: 0, balance_micros: 0, recomputed_micros: 0, differences: [] };
    const found = new Differences();
    const { accounts, entries } = recomputeLedger(this.#ledger, found);
    const balance_micros = this.#ledger.entries.balance();
    const recomputed_micros = accounts.get(BALANCE) ?? 0;
    return { entries, balance_micros, recomputed_micros, differences: found.all };
  }

  /** The terms or budgets have changed: reads them again and notifies the runs concerned. */
  async changed(): Promise<void> {
    const known = this.#knownTerms();
    if (known !== null) this.#terms = { ...known, read_at: 0 };
    if (!this.#ledger.areKept) return;
    await this.#readTerms(this.#ledger.owner());
    this.#watchBudgets();
    this.#notifyRuns();
  }

  async tend(): Promise<void> {
    if (!this.#ledger.areKept) return;
    const now = this.#now();
    const orgId = this.#ledger.owner();
    this.#ledger.write(() => {
      this.#ledger.reservations.dropEnded(now);
      this.#ledger.usage.drop(now);
      this.#ledger.spending.drop(this.#ledger.month(now));
      this.#ledger.entries.closeMonths(now);
    });
    await this.#termsIfKnown(orgId);
    this.#notifyRuns();
    if (this.#again !== null && this.#again.at > now) return;
    const subrequests = new Subrequests();
    this.isCopying = true;
    const done = [
      await this.#step("hours of use", () => copyUsage(this.#env, this.#ledger, subrequests, now)),
      await this.#step("archive of the ledger", () =>
        archiveEntries(this.#env, this.#ledger, this.archiveBounds, subrequests),
      ),
      await this.#step("notices of budgets", () => this.#deliver(subrequests, orgId, now)),
    ];
    this.isCopying = false;
    const failures = done.every((one) => one) ? 0 : (this.#again?.failures ?? 0) + 1;
    this.#again = failures === 0 ? null : { failures, at: now + backoffMs(failures, null, orgId) };
  }

  /** Epoch milliseconds; null if there is no housekeeping. */
  nextAt(): number | null {
    if (!this.#ledger.areKept) return null;
    const now = this.#now();
    const { archive, entries, reservations, spending } = this.#ledger;
    const isDue = archive.isDue(this.archiveBounds) || spending.toDeliver(1).length > 0;
    const outside = [usageDueAt(this.#ledger), isDue ? now : null]
      .filter((at) => at !== null)
      .map((at) => Math.max(at, this.#again?.at ?? 0));
    const due = [
      ...outside,
      entries.closesAt(),
      reservations.nextAt(this.#ledger.means(this.#knownTerms(), now), now),
      reservations.anyShort() ? endOfMonth(monthOf(now)) : null,
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Returns false if the step failed, which is logged. */
  async #step(what: string, step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (thrown) {
      logError(what, { org_id: this.#ledger.owner() }, thrown);
      return false;
    }
  }

  async #deliver(subrequests: Subrequests, orgId: string, now: number): Promise<void> {
    for (const notice of this.#ledger.spending.toDeliver(NOTICES_A_SLICE)) {
      try {
        await deliverNotice(this.#env, subrequests, orgId, notice);
      } catch (thrown) {
        if (this.#ledger.write(() => this.#ledger.spending.noteFailed(notice))) throw thrown;
        logError("a notice of a budget is given up", { org_id: orgId, target_id: notice.budget_id }, thrown);
      }
      this.#ledger.write(() => this.#ledger.spending.noteDelivered(notice, now));
    }
  }

  #watchBudgets(): void {
    const now = this.#now();
    const means = this.#ledger.means(this.#knownTerms(), now);
    if (means === null) return;
    this.#ledger.write(() => this.#ledger.spending.watch(means.month, means.terms.budgets, null, now));
  }

  /** Notifies runs that would now be granted another amount. Their rows are on disk before the notification. */
  #notifyRuns(): void {
    const now = this.#now();
    const means = this.#ledger.means(this.#knownTerms(), now);
    if (means === null) return;
    const notified = this.#ledger.reservations.toNotify(means).slice(0, LIMITS.sliceObjects);
    if (notified.length === 0) return;
    const ids = notified.map(({ run_id }) => run_id);
    this.#ledger.write(() => this.#ledger.reservations.noteNotified(ids, now));
    const { org_id } = means.terms;
    const runs = notified.map(({ run_id, project_id }) => ({ run_id, org_id, project_id }));
    this.#ctx.waitUntil(notifyRuns(this.#env, runs));
  }

  #knownTerms(): Terms | null {
    if (this.#terms === undefined) {
      this.#terms = this.#ledger.areKept ? this.#ledger.fact<Terms>(TERMS) : null;
      this.#keptTerms = this.#terms;
    }
    return this.#terms;
  }

  /** The stored terms are used while the database is unavailable. */
  #keepTerms(): void {
    if (!this.#ledger.areKept || this.#terms === this.#keptTerms) return;
    this.#ledger.keepFact(TERMS, this.#terms);
    this.#keptTerms = this.#terms;
  }

  async #termsIfKnown(orgId: string): Promise<Terms | null> {
    try {
      return await this.#readTerms(orgId);
    } catch (thrown) {
      logError("billing of the organisation", { org_id: orgId }, thrown);
      return null;
    }
  }

  /** If the terms cannot be read, the known terms apply. Throws if none are known. */
  async #readTerms(org_id: string): Promise<Terms> {
    const known = this.#knownTerms();
    const now = this.#now();
    if (known !== null && now - known.read_at < TERMS_KEPT_MS) return known;
    try {
      const { organization, budgets } = await readTerms(databaseOf(this.#env), org_id);
      const { billing, credit_limit_micros } = organization ?? NO_TERMS;
      const named = budgets.map(({ id, target_kind, target_id, limit_micros }) => {
        return { id, target_kind, target_id, limit_micros };
      });
      const terms = { org_id, billing, credit_limit_micros, budgets: named, read_at: now };
      this.#terms = terms;
      this.#keepTerms();
      return terms;
    } catch (thrown) {
      if (known === null) throw thrown;
      logError("billing of the organisation", { org_id }, thrown);
      return known;
    }
  }
}

const NEWEST = Number.MAX_SAFE_INTEGER;
const NO_ENTRIES = { entries: [], next: null };
const NO_TERMS = { billing: "off", credit_limit_micros: null } as const;
