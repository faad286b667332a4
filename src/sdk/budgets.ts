/** Budgets: monthly limits of spending. */
import type { BudgetPatch, BudgetRequest, BudgetView } from "../billing/wire.ts";
import { Editable } from "./resource.ts";

/** Each budget has the amount spent this month. */
export class Budgets extends Editable<BudgetView, BudgetRequest, BudgetPatch> {
  protected readonly path = "/budgets";
}
