/** Budgets: limits of what may be spent in a month. */
import type { BudgetPatch, BudgetRequest, BudgetView } from "../billing/wire.ts";
import { Editable } from "./resource.ts";

/** Each budget says what is spent of it this month. */
export class Budgets extends Editable<BudgetView, BudgetRequest, BudgetPatch> {
  protected readonly path = "/budgets";
}
