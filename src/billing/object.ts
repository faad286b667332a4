/**
 * The object of an organisation, with its ledger: it takes items from runs and the API, in addition to granting leases.
 *
 * Invariant. After the organisation is deleted, the object still accepts messages, and stores nothing of them.
 */
import { AccountObject as Account, type AccountPart } from "../kernel/account/object.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import type { HoldGrant } from "../kernel/run/schema.ts";
import { AccountBooks } from "./books/account-books.ts";
import { allTaken, noneGranted } from "./books/books.ts";
import type {
  BalanceState,
  BooksRpc,
  BudgetState,
  EntriesPage,
  EntriesQuery,
  HoldAsk,
  LedgerFindings,
  MonthState,
  Posting,
  PostReply,
  SettleOrder,
  SettleReply,
} from "./rpc.ts";

export class AccountObject extends Account implements Serves<BooksRpc> {
  books: AccountBooks;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.books = new AccountBooks(ctx, env, () => this.now());
  }

  protected override otherPart(): AccountPart {
    return this.books;
  }

  protected override makeParts(): void {
    super.makeParts();
    this.books = new AccountBooks(this.ctx, this.env, () => this.now());
  }

  async settle(order: SettleOrder): Promise<SettleReply> {
    if (this.tombstone.stands) return allTaken(order, this.now());
    const reply = await this.books.settle(order);
    await this.arm();
    return reply;
  }

  async hold(ask: HoldAsk): Promise<HoldGrant> {
    if (this.tombstone.stands) return noneGranted(this.now());
    const grant = await this.books.hold(ask);
    await this.arm();
    return grant;
  }

  async post(posting: Posting): Promise<PostReply> {
    if (this.tombstone.stands) return { posted: false, entry: null, balance_micros: 0, gone: true };
    const reply = await this.books.post(posting);
    await this.arm();
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
}
