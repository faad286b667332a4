/** A part of the platform that the rest does not depend on: docs/architecture.md. */
import type { SliceTables } from "../db/slice-tables.ts";
import type { AccountHooks } from "../kit/account-hooks.ts";
import type { SliceHooks } from "../kit/slice-hooks.ts";
import type { ChargeHooks } from "../run/charges.ts";
import type { Operation } from "./operation.ts";

export interface Slice {
  readonly operations: readonly Operation[];
  /** Its hooks in the kernel and in other slices. */
  readonly hooks: SliceHooks;
  /** Its tables, and what the kernel must do with them. */
  readonly tables?: SliceTables;
  /** Only for the slice that has accounts. */
  readonly accounts?: AccountHooks;
  /** Only for the slice that charges runs. */
  readonly charges?: ChargeHooks;
}
