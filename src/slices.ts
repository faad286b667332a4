/** The list of slices, and all operations of the API. Importing this file registers the hooks of every slice. */
import { accounts } from "./accounts/slice.ts";
import { agents } from "./agents/slice.ts";
import { billing } from "./billing/slice.ts";
import { fleets } from "./fleets/slice.ts";
import { hub } from "./hub/slice.ts";
import { registerTables } from "./kernel/db/slice-tables.ts";
import { KERNEL_OPERATIONS } from "./kernel/http/app.ts";
import type { Operation } from "./kernel/http/operation.ts";
import type { Slice } from "./kernel/http/slice.ts";
import { registerAccounts } from "./kernel/kit/account-hooks.ts";
import { register } from "./kernel/kit/slice-hooks.ts";
import { registerCharges } from "./kernel/run/charges.ts";
import { retention } from "./retention/slice.ts";
import { reviews } from "./reviews/slice.ts";
import { sharing } from "./sharing/slice.ts";
import { telemetry } from "./telemetry/slice.ts";
import { triggers } from "./triggers/slice.ts";
import { webhooks } from "./webhooks/slice.ts";

/** A project's objects are deleted in this order: fleets before the webhooks, because fleets send events to them. */
const SLICES: readonly Slice[] = [
  accounts,
  fleets,
  webhooks,
  triggers,
  sharing,
  reviews,
  telemetry,
  hub,
  agents,
  retention,
  billing,
];

for (const { hooks, tables, accounts: accountHooks, charges } of SLICES) {
  register(hooks);
  if (tables !== undefined) registerTables(tables);
  if (accountHooks !== undefined) registerAccounts(accountHooks);
  if (charges !== undefined) registerCharges(charges);
}

export const OPERATIONS: readonly Operation[] = [
  ...KERNEL_OPERATIONS,
  ...SLICES.flatMap(({ operations }) => operations),
];
