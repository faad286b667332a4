/** Budgets: what an organisation, one of its projects, or one key or person may spend in a month. */
import { BudgetList, BudgetPatch, BudgetRequest, BudgetView } from "../contract/billing.ts";
import { Deleted } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import { findBudget } from "../db/budgets.ts";
import { refuseOneProject } from "../runtime/service/organizations.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readBody, readCreation, readQuery } from "./answer.ts";
import { unwrap } from "./errors.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

const FOLDER = "/v1/budgets";
const ONE = `${FOLDER}/{id}`;

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
      const { services, caller } = context.var;
      return context.json(unwrap(await services.readBudget(context.env, caller, pathParam(context, "id"))));
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
  const made = await context.var.services.createBudget(context.env, context.var.caller, request, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const { env } = context;
  const { caller, services } = context.var;
  const refused = refuseOneProject(caller);
  if (refused !== null) unwrap(refused);
  const { after, limit, order } = readQuery(context, PageQuery);
  const position = await positionOf(after, "a budget", (id) => findBudget(env.DB, caller.orgId, id));
  return context.json(
    pageOf(await services.readBudgets(env, caller, { after: position, limit: limit + 1, order }), limit),
  );
}

async function changeOne(context: ApiContext): Promise<Response> {
  const patch = await readBody(context, BudgetPatch);
  const { caller, services, now } = context.var;
  const id = pathParam(context, "id");
  return context.json(unwrap(await services.changeBudget(context.env, caller, id, patch, now())));
}

async function removeOne(context: ApiContext): Promise<Response> {
  const { caller, services } = context.var;
  const { id } = unwrap(await services.removeBudget(context.env, caller, pathParam(context, "id")));
  return context.json({ object: "budget", id, deleted: true });
}
