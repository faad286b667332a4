/**
 * The part of an organisation's object that keeps its books: reads what it agreed to, takes what runs and the API bring,
 * tells runs of money they wait for, and tends what follows (thresholds, copies, months) from the object's alarm. What is
 * written, and when, stands in books.ts.
 *
 * Invariants. What was used is taken in whatever else fails. Nothing is reserved while it is not known what the
 * organisation agreed to. A step of the alarm that fails is logged and tried again, and holds up no other.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { LedgerEntry } from "../../contract/money.ts";
import { readTerms } from "../../db/ledger.ts";
import type {
  BalanceState,
  BudgetState,
  EntriesQuery,
  HoldAsk,
  HoldGrant,
  LedgerFindings,
  MonthState,
  Posting,
  PostReply,
  SettleOrder,
  SettleReply,
} from "../contract/money-wire.ts";
import { logError } from "../kit/log.ts";
import { Books } from "./books.ts";
import { endOfMonth, monthOf } from "./books-schema.ts";
import { crossedOf, type Terms } from "./budgets.ts";
import { BALANCE, entryOf } from "./entries.ts";
import { tellRuns } from "./tell-runs.ts";
import { Differences, verifyBooks } from "./verify.ts";

const TERMS_KEPT_MS = 5 * 60_000;
const TERMS = "terms";

export class AccountBooks {
  readonly #ctx: DurableObjectState;
  readonly #env: Env;
  readonly #now: () => number;
  readonly #books: Books;
  #terms: Terms | null | undefined;
  /** As it stands on disk. */
  #keptTerms: Terms | null | undefined;

  constructor(ctx: DurableObjectState, env: Env, now: () => number) {
    this.#ctx = ctx;
    this.#env = env;
    this.#now = now;
    this.#books = new Books(ctx.storage);
  }

  async settle(order: SettleOrder): Promise<SettleReply> {
    const terms = order.run.price_version === null ? null : await this.#termsIfKnown(order.run.scope.orgId);
    const reply = this.#books.settle(order, terms, this.#now());
    this.#keepTerms();
    return reply;
  }

  async hold(ask: HoldAsk): Promise<HoldGrant> {
    const terms = await this.#readTerms(ask.run.scope.orgId);
    const grant = this.#books.hold(ask, terms, this.#now());
    this.#keepTerms();
    return grant;
  }

  async post(posting: Posting): Promise<PostReply> {
    const terms = await this.#termsIfKnown(posting.orgId);
    const reply = this.#books.post(posting, terms, this.#now());
    this.#keepTerms();
    this.#tellRuns();
    return reply;
  }

  async balance(orgId: string): Promise<BalanceState> {
    const { billing, credit_limit_micros } = await this.#readTerms(orgId);
    const agreed = { billing, credit_limit_micros };
    const { areKept, entries, holds } = this.#books;
    if (!areKept) return { ...agreed, ...NOTHING };
    return {
      ...agreed,
      ...{ balance_micros: entries.balance(), reserved_micros: holds.reserved(this.#now()) },
      ...{ entries: entries.lastNumber(), uncopied: 0, behind_since: null },
    };
  }

  async budgets(orgId: string): Promise<BudgetState[]> {
    const { budgets } = await this.#readTerms(orgId);
    if (!this.#books.areKept) return [];
    const { spending, holds } = this.#books;
    const now = this.#now();
    return budgets.map((budget) => {
      const spent_micros = spending.of(monthOf(now), budget);
      const thresholds = crossedOf(budget, spent_micros);
      return { budget_id: budget.id, spent_micros, reserved_micros: holds.reservedOf(budget, now), thresholds };
    });
  }

  async entries(query: EntriesQuery): Promise<LedgerEntry[]> {
    return this.#books.areKept ? this.#books.entries.list(query).map(entryOf) : [];
  }

  async entriesOf(runId: string, sourceIds: readonly string[]): Promise<LedgerEntry[]> {
    return this.#books.areKept ? this.#books.entries.ofSources(runId, sourceIds).map(entryOf) : [];
  }

  month(month: string): MonthState | null {
    const row = this.#books.areKept ? this.#books.entries.month(month) : null;
    if (row === null) return null;
    const { first_entry, last_entry, opening_micros, closing_micros, sha256, closed_at } = row;
    const entries = last_entry - first_entry + 1;
    const accounts: Record<string, number> = JSON.parse(row.accounts);
    return { month, first_entry, last_entry, entries, opening_micros, closing_micros, accounts, sha256, closed_at };
  }

  async verify(_orgId: string): Promise<LedgerFindings> {
    const found = new Differences();
    if (!this.#books.areKept)
      return { entries: 0, balance_micros: 0, recomputed_micros: 0, differences: [], uncopied: 0 };
    const { accounts, entries } = verifyBooks(this.#books, found);
    const recomputed_micros = accounts.get(BALANCE) ?? 0;
    const balance_micros = this.#books.entries.balance();
    return { entries, balance_micros, recomputed_micros, differences: found.all, uncopied: 0 };
  }

  /** What it agreed to is read anew, and whoever it concerns is told. */
  async changed(): Promise<void> {
    const known = this.#knownTerms();
    if (known !== null) this.#terms = { ...known, read_at: 0 };
    if (!this.#books.areKept) return;
    await this.#readTerms(this.#books.owner());
    this.#watchBudgets();
    this.#tellRuns();
  }

  async tend(): Promise<void> {
    if (!this.#books.areKept) return;
    const now = this.#now();
    this.#books.write(() => {
      this.#books.holds.dropEnded(now);
      this.#books.usage.drop(now);
      this.#books.spending.drop(monthOf(now));
    });
    await this.#termsIfKnown(this.#books.owner());
    this.#tellRuns();
  }

  /** Epoch milliseconds; null while there is nothing to tend. */
  nextAt(): number | null {
    if (!this.#books.areKept) return null;
    const now = this.#now();
    const { holds } = this.#books;
    const due = [
      holds.nextAt(this.#books.means(this.#knownTerms(), now), now),
      holds.anyShort() ? endOfMonth(monthOf(now)) : null,
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  #watchBudgets(): void {
    const now = this.#now();
    const means = this.#books.means(this.#knownTerms(), now);
    if (means === null) return;
    this.#books.write(() => this.#books.spending.watch(means.month, means.terms.budgets, null, now));
  }

  /** Those that would be granted something else now; on disk before they hear of it. */
  #tellRuns(): void {
    const now = this.#now();
    const means = this.#books.means(this.#knownTerms(), now);
    if (means === null) return;
    const told = this.#books.holds.toTell(means).slice(0, LIMITS.sliceObjects);
    if (told.length === 0) return;
    const ids = told.map(({ run_id }) => run_id);
    this.#books.write(() => this.#books.holds.noteTold(ids, now));
    const { org_id } = means.terms;
    const runs = told.map(({ run_id, project_id }) => ({ run_id, org_id, project_id }));
    this.#ctx.waitUntil(tellRuns(this.#env, runs));
  }

  #knownTerms(): Terms | null {
    if (this.#terms === undefined) {
      this.#terms = this.#books.areKept ? this.#books.fact<Terms>(TERMS) : null;
      this.#keptTerms = this.#terms;
    }
    return this.#terms;
  }

  /** For a time when the database is away. */
  #keepTerms(): void {
    if (!this.#books.areKept || this.#terms === this.#keptTerms) return;
    this.#books.keepFact(TERMS, this.#terms);
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

  /** What cannot be read anew stays as it is known. Throws where nothing is known. */
  async #readTerms(org_id: string): Promise<Terms> {
    const known = this.#knownTerms();
    const now = this.#now();
    if (known !== null && now - known.read_at < TERMS_KEPT_MS) return known;
    try {
      const { organization, budgets } = await readTerms(this.#env.DB, org_id);
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

const NO_TERMS = { billing: "off", credit_limit_micros: null } as const;
const NOTHING = { balance_micros: 0, reserved_micros: 0, entries: 0, uncopied: 0, behind_since: null };
