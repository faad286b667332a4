/** Budgets: what an organisation, one of its projects, or one key or person may spend in a month. */
import {
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  readQuery,
} from "../../api/answer.ts";
import { unwrap } from "../../api/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../api/operation.ts";
import { PageQuery, pageOf, positionOf } from "../../api/page.ts";
import { BudgetList, BudgetPatch, BudgetRequest, BudgetView } from "../../contract/billing.ts";
import { Deleted } from "../../contract/endpoint.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { refuseOneProject } from "../../runtime/contract/refusal.ts";
import { findBudget } from "../queries/budgets.ts";
import type { BillingService } from "../service.ts";

const FOLDER = "/v1/budgets";
const ONE = `${FOLDER}/{id}`;

const service = serviceOf<BillingService>("billing");

export const budgetOperations: readonly Operation[] = [
  {
    id: "createBudget",
    route: `POST ${FOLDER}`,
    permission: "billing:write",
    reach: "organization",
    summary: "Say what may be charged in a month (UTC), in all or for a project, a key or a person",
    description:
      "At 50, 80 and 100 per cent it is told of. Runs that it does not cover wait with `flow.state` `over_budget`, and go on when it is raised or the month is over; a new one is refused with `budget_exhausted`.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: BudgetRequest },
    reply: { status: 201, description: "The budget", schema: BudgetView, headers: CREATED_HEADERS },
    errors: ["not_found", "conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listBudgets",
    route: `GET ${FOLDER}`,
    permission: "billing:read",
    reach: "organization",
    summary: "List budgets, with what is spent of each this month",
    query: PageQuery,
    reply: { description: "One page of budgets", schema: BudgetList },
    handle: listAll,
  },
  {
    id: "getBudget",
    route: `GET ${ONE}`,
    permission: "billing:read",
    reach: "organization",
    summary: "Read a budget, and what is spent of it this month",
    reply: { description: "The budget", schema: BudgetView },
    handle: async (context) => {
      const { caller } = context.var;
      return context.json(unwrap(await service(context).readBudget(context.env, caller, pathParam(context, "id"))));
    },
  },
  {
    id: "updateBudget",
    route: `PATCH ${ONE}`,
    permission: "billing:write",
    reach: "organization",
    summary: "Raise or lower a budget; runs that waited for it go on within seconds",
    body: { schema: BudgetPatch },
    reply: { description: "The budget as it is now", schema: BudgetView, example: { limit_micros: 40_000_000 } },
    handle: changeOne,
  },
  {
    id: "deleteBudget",
    route: `DELETE ${ONE}`,
    permission: "billing:write",
    reach: "organization",
    summary: "Delete a budget: nothing is held back by it any more",
    reply: { description: "It is gone", schema: Deleted, example: { object: "budget", id: EXAMPLE.budget } },
    handle: removeOne,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, BudgetRequest);
  const made = await service(context).createBudget(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const { env } = context;
  const { caller } = context.var;
  const refused = refuseOneProject(caller);
  if (refused !== null) unwrap(refused);
  const { after, limit, order } = readQuery(context, PageQuery);
  const position = await positionOf(after, "a budget", (id) => findBudget(env.DB, caller.orgId, id));
  return context.json(
    pageOf(await service(context).readBudgets(env, caller, { after: position, limit: limit + 1, order }), limit),
  );
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, BudgetPatch);
  const { caller, now } = context.var;
  const id = pathParam(context, "id");
  return context.json(unwrap(await service(context).changeBudget(context.env, caller, id, patch, now())));
}

async function removeOne(context: ApiContext): Promise<Response> {
  const { caller } = context.var;
  const { id } = unwrap(await service(context).removeBudget(context.env, caller, pathParam(context, "id")));
  return context.json({ object: "budget", id, deleted: true });
}
