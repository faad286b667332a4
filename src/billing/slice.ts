/** Billing: prices, the ledger, budgets, payments, usage and statements of an organisation. */
import type { Slice } from "../kernel/http/slice.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { chargeOfEnd, pushMicros } from "./charging.ts";
import { chargedMicros } from "./preview.ts";
import { offersAt, pricesOf } from "./price-lists.ts";
import { releaseFirst, reserveFirst } from "./reserve.ts";
import { budgetOperations } from "./routes/budgets.ts";
import { chargeOperations } from "./routes/charges.ts";
import { ledgerOperations } from "./routes/ledger.ts";
import { stripeOperations } from "./routes/stripe.ts";
import { usageOperations } from "./routes/usage.ts";
import { ledgerObject } from "./rpc.ts";
import { RunSettling } from "./settling.ts";
import { postStorage } from "./storage-days.ts";
import { budgets, usageHours } from "./tables.ts";

/** What is left in the ledger of a deleted organisation. Empty if it was never charged. */
async function closeOrganization(
  env: Env,
  orgId: string,
  subrequests: Subrequests,
): Promise<Readonly<Record<string, number>>> {
  const { entries, balance_micros } = await subrequests.object(() => ledgerObject(env, orgId).balance(orgId));
  if (entries === 0) return {};
  const left = balance_micros < 0 ? { owed_micros: -balance_micros } : { balance_micros };
  return { ledger_entries: entries, ...left };
}

export const billing: Slice = {
  operations: [...ledgerOperations, ...budgetOperations, ...stripeOperations, ...usageOperations, ...chargeOperations],
  hooks: { onProjectDays: postStorage, closeOrganization },
  tables: { ofOrganization: [budgets, usageHours] },
  charges: {
    ...{ pricesOf, offersAt, expected: chargedMicros, reserveFirst, releaseFirst },
    ...{ chargeOf: chargeOfEnd, pushMicros },
    accountOf: (env, store, now) => new RunSettling(env, store, now),
  },
};
