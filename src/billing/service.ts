/** The functions behind the billing routes. They use Durable Objects, so they do not run in Node. */
import { auditCharges } from "./audit-charges.ts";
import { changeBudget, createBudget, removeBudget, showBudgets } from "./budgets.ts";
import { createAdjustment, createTopUp } from "./postings.ts";
import { createPriceList, readPrices } from "./prices.ts";
import { readBalance, readLedger, verifyLedger } from "./read-ledger.ts";
import { listStatements, readStatement } from "./statements.ts";
import { createCheckout, receiveStripeEvent } from "./stripe.ts";
import { readUsage } from "./usage.ts";

export const billingService = {
  readPrices,
  createPriceList,
  readBalance,
  readLedger,
  verifyLedger,
  createTopUp,
  createAdjustment,
  createBudget,
  showBudgets,
  changeBudget,
  removeBudget,
  createCheckout,
  receiveStripeEvent,
  readUsage,
  listStatements,
  readStatement,
  auditCharges,
};
export type BillingService = typeof billingService;
