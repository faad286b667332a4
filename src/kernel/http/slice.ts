/** A part of the platform that the rest does without: docs/architecture.md. */
import type { SliceTables } from "../db/slice-tables.ts";
import type { AccountHooks } from "../kit/account-hooks.ts";
import type { SliceHooks } from "../kit/slice-hooks.ts";
import type { ChargeHooks } from "../run/charges.ts";
import type { Operation } from "./operation.ts";

export interface Slice {
  readonly operations: readonly Operation[];
  /** What it does inside the rest. */
  readonly hooks: SliceHooks;
  /** What the rest does with its tables. */
  readonly tables?: SliceTables;
  /** Of the one that has accounts. */
  readonly accounts?: AccountHooks;
  /** Of the one that charges runs. */
  readonly charges?: ChargeHooks;
}
