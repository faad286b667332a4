/** Routes for budgets: what an organisation, a project, or a key or person may spend in a month. */

import { EXAMPLE } from "../../contract/primitives.ts";
import { databaseOf } from "../../kernel/db/database.ts";
import { serviceOf } from "../../kernel/http/operation.ts";
import { resourceOperations } from "../../kernel/http/resource.ts";
import { refuseOneProject } from "../../kernel/messages/refusal.ts";
import { findBudget, listBudgets } from "../queries/budgets.ts";
import type { BillingService } from "../service.ts";
import { BudgetList, BudgetPatch, BudgetRequest, BudgetView } from "../wire.ts";

const service = serviceOf<BillingService>("billing");

export const budgetOperations = resourceOperations({
  noun: "budget",
  path: "/v1/budgets",
  permissions: { read: "billing:read", write: "billing:write" },
  reach: "organization",
  schema: BudgetView,
  example: EXAMPLE.budget,
  refuse: ({ var: { caller } }) => refuseOneProject(caller),
  find: ({ env, var: { caller } }, id) => findBudget(databaseOf(env), caller.orgId, id),
  show: (context, budgets) => service(context).showBudgets(context.env, context.var.caller.orgId, budgets),
  create: {
    summary: "Limit what may be charged in a month (UTC), in total or for a project, key or person",
    description:
      "At 50, 80 and 100 per cent of the budget an event is sent. Runs that the budget does not cover wait with `status_reason.state` `over_budget`, and continue when the budget is raised or deleted, or the month ends; new runs are refused with `budget_exhausted`.",
    body: { schema: BudgetRequest },
    reply: { description: "The budget" },
    errors: ["not_found"],
    run: (context, request, options) =>
      service(context).createBudget(context.env, context.var.caller, request, options),
  },
  list: {
    summary: "List budgets, with this month's spending",
    reply: { description: "One page of budgets", schema: BudgetList },
    run: ({ env, var: { caller } }, page) => listBudgets(databaseOf(env), caller.orgId, page),
  },
  get: { summary: "Read a budget, with this month's spending", reply: { description: "The budget" } },
  update: {
    summary: "Raise or lower a budget; runs that waited for it continue within seconds",
    body: { schema: BudgetPatch },
    reply: { description: "The changed budget", example: { limit_micros: 40_000_000 } },
    run: (context, { id }, patch) => {
      const { caller, now } = context.var;
      return service(context).changeBudget(context.env, caller.orgId, id, patch, now());
    },
  },
  delete: {
    summary: "Delete a budget: nothing is held back by it any more",
    run: (context, { id }) => service(context).removeBudget(context.env, context.var.caller.orgId, id),
  },
});
