/** The part of the client about prices, the balance, the ledger, budgets and payments. */
import type { ChargeAudit } from "../contract/audit.ts";
import type {
  AdjustmentRequest,
  BalanceView,
  BudgetPatch,
  BudgetRequest,
  BudgetView,
  CheckoutRequest,
  CheckoutView,
  LedgerVerification,
  PostedEntry,
  TopUpRequestInput,
} from "../contract/billing.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { LedgerEntry, PriceList, PriceListRequestInput, PriceLists } from "../contract/money.ts";
import { AccountsClient } from "./accounts-client.ts";
import type { CallOptions, LedgerQuery, ListQuery, OrganizationQuery, Page, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";

export class LedgerClient extends AccountsClient {
  /** The list of prices in force, then those that are to come; with a version that one alone. */
  listPrices(query: { readonly version?: string | undefined } = {}, options: CallOptions = {}): Promise<PriceLists> {
    return this.requests.json(`/prices${search(query)}`, options);
  }

  /** For an operator. A list never changes. */
  createPriceList(request: PriceListRequestInput, options: PostOptions = {}): Promise<PriceList> {
    return this.requests.post("/prices", request, options);
  }

  /** `organization`: for an operator, any. */
  getBalance(query: OrganizationQuery = {}, options: CallOptions = {}): Promise<BalanceView> {
    return this.requests.json(`/balance${search(query)}`, options);
  }

  /** One page of entries, newest first. It may be empty and not the last: `has_more` says so, and `last_id` is the next one's `after`. */
  listLedgerEntries(query: LedgerQuery = {}, options: CallOptions = {}): Promise<Page<LedgerEntry>> {
    return this.requests.json(`/ledger${search(query)}`, options);
  }

  ledgerEntries(query: LedgerQuery = {}, options: CallOptions = {}): AsyncGenerator<LedgerEntry> {
    return eachOf(query, (page) => this.listLedgerEntries(page, options));
  }

  /** Adds the ledger up again. `organization`: for an operator, any. */
  verifyLedger(query: OrganizationQuery = {}, options: CallOptions = {}): Promise<LedgerVerification> {
    return this.requests.json(`/ledger/verification${search(query)}`, options);
  }

  /** A slice of what a run was charged, compared with what is stored of its rollouts. `next` is the `after` of the next. */
  auditCharges(
    runId: string,
    query: { readonly after?: number | undefined } = {},
    options: CallOptions = {},
  ): Promise<ChargeAudit> {
    return this.requests.json(`/runs/${encodeURIComponent(runId)}/charges${search(query)}`, options);
  }

  /** For an operator: money that an organisation paid in. */
  createTopUp(request: TopUpRequestInput, options: PostOptions = {}): Promise<PostedEntry> {
    return this.requests.post("/top-ups", request, options);
  }

  /** For an operator: a refund, a dispute or a correction. */
  createAdjustment(request: AdjustmentRequest, options: PostOptions = {}): Promise<PostedEntry> {
    return this.requests.post("/adjustments", request, options);
  }

  createBudget(request: BudgetRequest, options: PostOptions = {}): Promise<BudgetView> {
    return this.requests.post("/budgets", request, options);
  }

  /** One page of budgets, each with what is spent of it this month. */
  listBudgets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<BudgetView>> {
    return this.requests.json(`/budgets${search(query)}`, options);
  }

  budgets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<BudgetView> {
    return eachOf(query, (page) => this.listBudgets(page, options));
  }

  getBudget(id: string, options: CallOptions = {}): Promise<BudgetView> {
    return this.requests.json(`/budgets/${encodeURIComponent(id)}`, options);
  }

  updateBudget(id: string, patch: BudgetPatch, options: CallOptions = {}): Promise<BudgetView> {
    return this.requests.patch(`/budgets/${encodeURIComponent(id)}`, patch, options);
  }

  deleteBudget(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/budgets/${encodeURIComponent(id)}`, options);
  }

  /** Begins a payment, where the deployment takes them: send whoever pays to `url`. */
  createCheckout(request: CheckoutRequest, options: PostOptions = {}): Promise<CheckoutView> {
    return this.requests.post("/checkouts", request, options);
  }
}
