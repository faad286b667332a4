/**
 * One organisation, one object: what it may have at once, and its books. Each part of it stands in a file of its own, keeps
 * rows of its own and says when it wants to be tended; the object puts them together under its one alarm.
 *
 * Invariants. A run calls each part at most once a second, and never per rollout. The alarm never throws. Once its
 * organisation is gone it takes what still comes, and keeps nothing of it.
 */
import { DurableObject } from "cloudflare:workers";
import type { AccountRpc, ShareAsk, ShareGrants } from "../contract/account-wire.ts";
import type {
  BalanceState,
  BudgetState,
  EntriesPage,
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
import type { Serves } from "../contract/rpc.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { Tombstone } from "../kit/tombstone.ts";
import { AccountBooks } from "./account-books.ts";
import { allTaken, noneGranted } from "./books.ts";
import { AccountShares } from "./shares.ts";

export class AccountObject extends DurableObject<Env> implements Serves<AccountRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  shares: AccountShares;
  books: AccountBooks;
  readonly #tombstone: Tombstone;
  /** When the alarm goes, as far as this instance knows. */
  #armedAt: number | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#tombstone = new Tombstone(ctx.storage);
    this.shares = new AccountShares(ctx, env, () => this.now());
    this.books = new AccountBooks(ctx, env, () => this.now());
  }

  async ask(asked: ShareAsk): Promise<ShareGrants> {
    const grants = await this.shares.ask(asked);
    await this.#arm();
    return grants;
  }

  async changed(): Promise<void> {
    await this.shares.changed();
    await this.books.changed();
    await this.#arm();
  }

  async settle(order: SettleOrder): Promise<SettleReply> {
    if (this.#tombstone.stands) return allTaken(order, this.now());
    const reply = await this.books.settle(order);
    await this.#arm();
    return reply;
  }

  async hold(ask: HoldAsk): Promise<HoldGrant> {
    if (this.#tombstone.stands) return noneGranted(this.now());
    const grant = await this.books.hold(ask);
    await this.#arm();
    return grant;
  }

  async post(posting: Posting): Promise<PostReply> {
    if (this.#tombstone.stands) return { posted: false, entry: null, balance_micros: 0, gone: true };
    const reply = await this.books.post(posting);
    await this.#arm();
    return reply;
  }

  balance(orgId: string): Promise<BalanceState> {
    return this.books.balance(orgId);
  }

  entries(query: EntriesQuery): Promise<EntriesPage> {
    return this.books.entries(query);
  }

  entriesOf(runId: string, sourceIds: readonly string[], before: number | null = null): Promise<EntriesPage> {
    return this.books.entriesOf(runId, sourceIds, before);
  }

  month(_orgId: string, month: string): MonthState | null {
    return this.books.month(month);
  }

  closedMonths(_orgId: string, before: string | null, limit: number): readonly MonthState[] {
    return this.books.closedMonths(before, limit);
  }

  budgets(orgId: string): Promise<readonly BudgetState[]> {
    return this.books.budgets(orgId);
  }

  verify(_orgId: string): LedgerFindings {
    return this.books.verify();
  }

  async forget(): Promise<boolean> {
    if (this.books.isCopying) return false;
    await this.#tombstone.set(this.now());
    // Those that were know of rows that are gone.
    this.shares = new AccountShares(this.ctx, this.env, () => this.now());
    this.books = new AccountBooks(this.ctx, this.env, () => this.now());
    return true;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    this.#armedAt = null;
    if (await this.#tombstone.decay(this.now())) return;
    this.shares.tend();
    await this.books.tend();
    await this.#arm();
  }

  async #arm(): Promise<void> {
    const due = [this.shares.nextAt(), this.books.nextAt()].filter((at) => at !== null);
    if (due.length === 0) return;
    const at = Math.min(...due);
    // One that comes early finds nothing to tend, and is cheaper than to put it off at each call.
    if (this.#armedAt !== null && this.#armedAt <= at && this.#armedAt > this.now()) return;
    await this.ctx.storage.setAlarm(at);
    this.#armedAt = at;
  }
}
