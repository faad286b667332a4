/**
 * The object of an organisation, with its ledger: it takes items from runs and the API, in addition to granting leases.
 *
 * Invariant. After the organisation is deleted, the object still accepts messages, and stores nothing of them.
 */
import { AccountObject as Account, type AccountPart } from "../kernel/account/object.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import type { GrantedReservation } from "../kernel/run/schema.ts";
import { AccountLedger } from "./ledger/account-ledger.ts";
import { allTaken, noneGranted } from "./ledger/ledger.ts";
import type {
  BalanceState,
  BudgetState,
  EntriesPage,
  EntriesQuery,
  LedgerFindings,
  LedgerRpc,
  MonthState,
  Posting,
  PostReply,
  ReservationAsk,
  SettleOrder,
  SettleReply,
} from "./rpc.ts";

export class AccountObject extends Account implements Serves<LedgerRpc> {
  ledger: AccountLedger;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.ledger = new AccountLedger(ctx, env, () => this.now());
  }

  protected override otherPart(): AccountPart {
    return this.ledger;
  }

  protected override makeParts(): void {
    super.makeParts();
    this.ledger = new AccountLedger(this.ctx, this.env, () => this.now());
  }

  async settle(order: SettleOrder): Promise<SettleReply> {
    if (this.tombstone.stands) return allTaken(order, this.now());
    const reply = await this.ledger.settle(order);
    await this.arm();
    return reply;
  }

  async reserve(ask: ReservationAsk): Promise<GrantedReservation> {
    if (this.tombstone.stands) return noneGranted(this.now());
    const grant = await this.ledger.reserve(ask);
    await this.arm();
    return grant;
  }

  async post(posting: Posting): Promise<PostReply> {
    if (this.tombstone.stands) return { posted: false, entry: null, balance_micros: 0, gone: true };
    const reply = await this.ledger.post(posting);
    await this.arm();
    return reply;
  }

  balance(orgId: string): Promise<BalanceState> {
    return this.ledger.balance(orgId);
  }

  entries(query: EntriesQuery): Promise<EntriesPage> {
    return this.ledger.entries(query);
  }

  entriesOf(runId: string, sourceIds: readonly string[], before: number | null = null): Promise<EntriesPage> {
    return this.ledger.entriesOf(runId, sourceIds, before);
  }

  month(_orgId: string, month: string): MonthState | null {
    return this.ledger.month(month);
  }

  closedMonths(_orgId: string, before: string | null, limit: number): readonly MonthState[] {
    return this.ledger.closedMonths(before, limit);
  }

  budgets(orgId: string): Promise<readonly BudgetState[]> {
    return this.ledger.budgets(orgId);
  }

  verify(_orgId: string): LedgerFindings {
    return this.ledger.verify();
  }
}
