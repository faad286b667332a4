/** Budgets of an organisation: made, shown with what is spent of them this month, changed, deleted. */
import type { BudgetPatch, BudgetRequest, BudgetView } from "../contract/billing.ts";
import type { Caller } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { type Page, seconds } from "../db/page.ts";
import type { BudgetRow } from "../db/schema.ts";
import { tellAccount } from "../runtime/account/tell-account.ts";
import { keyReused, type Result, refuse, refuseOneProject } from "../runtime/contract/refusal.ts";
import { accounts, refuseDeleted } from "../runtime/kit/account-hooks.ts";
import { type CreateOptions, replay, toRemember } from "../runtime/kit/idempotency.ts";
import { minting } from "../runtime/kit/secrets.ts";
import { notFound } from "../runtime/service/read-run.ts";
import { deleteBudget, findBudget, insertBudget, listBudgets, updateBudget } from "./queries/budgets.ts";
import type { BudgetState } from "./rpc.ts";
import { booksObject } from "./rpc.ts";

const OPERATION = "createBudget";

type Stored = Omit<BudgetRow, "org_id">;

export async function createBudget(
  env: Env,
  caller: Caller,
  request: BudgetRequest,
  options: CreateOptions,
): Promise<Result<{ value: BudgetView; replayed: boolean }>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const before = await findRepeated(env, caller, options);
  if (before !== null) return before;
  const target = await targetOf(env, caller.orgId, request);
  if (!target.ok) return target;
  const { now } = options;
  const { target_kind, limit_micros } = request;
  const times = { created_at: now, updated_at: now };
  const row = { id: mintId("bud", minting(env, now)), target_kind, target_id: target.value, limit_micros, ...times };
  const outcome = await insertBudget(env.DB, caller.orgId, row, toRemember(OPERATION, row.id, options));
  if (outcome === "taken") return (await findRepeated(env, caller, options)) ?? keyReused();
  if (outcome === "target_taken") {
    const message = `there is a budget for ${target.value} already: PATCH that one`;
    return refuse("conflict", message, target_kind === "organization" ? "target_kind" : "target_id");
  }
  if (outcome === "full") {
    const going = await refuseDeleted(env, caller.orgId);
    return going ?? refuse("conflict", `an organisation has ${LIMITS.budgets} budgets at most: delete some`, null);
  }
  await tellAccount(env, caller.orgId);
  return { ok: true, value: { value: await viewOf(env, caller.orgId, row), replayed: false } };
}

/** A page of them, and one more where there is one. */
export async function readBudgets(env: Env, caller: Caller, page: Page): Promise<BudgetView[]> {
  const rows = await listBudgets(env.DB, caller.orgId, page);
  if (rows.length === 0) return [];
  const states = await booksObject(env, caller.orgId).budgets(caller.orgId);
  return rows.map((row) => budgetViewOf(row, states));
}

export async function readBudget(env: Env, caller: Caller, id: string): Promise<Result<BudgetView>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const row = await findBudget(env.DB, caller.orgId, id);
  return row === null ? notFound("budget", id) : { ok: true, value: await viewOf(env, caller.orgId, row) };
}

export async function changeBudget(
  env: Env,
  caller: Caller,
  id: string,
  { limit_micros }: BudgetPatch,
  now: number,
): Promise<Result<BudgetView>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const row = await updateBudget(env.DB, caller.orgId, id, { limit_micros, updated_at: now });
  if (row === null) return notFound("budget", id);
  await tellAccount(env, caller.orgId);
  return { ok: true, value: await viewOf(env, caller.orgId, row) };
}

export async function removeBudget(env: Env, caller: Caller, id: string): Promise<Result<{ id: string }>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  if (!(await deleteBudget(env.DB, caller.orgId, id))) return notFound("budget", id);
  await tellAccount(env, caller.orgId);
  return { ok: true, value: { id } };
}

/** The id of what the budget is for, if it is the organisation's. */
async function targetOf(env: Env, orgId: string, { target_kind, target_id }: BudgetRequest): Promise<Result<string>> {
  if (target_kind === "organization") {
    if (target_id === undefined || target_id === orgId) return { ok: true, value: orgId };
    return refuse("not_found", `no organization ${target_id}`, "target_id");
  }
  if (target_id === undefined) {
    const what = target_kind === "project" ? "a project by its id or name" : "a key or a person by its id";
    return refuse("invalid_request", `target_id: is required: name ${what}`, "target_id");
  }
  if (target_kind === "project") {
    const id = await accounts().projectId(env, orgId, target_id);
    return id === null ? refuse("not_found", `no project ${target_id}`, "target_id") : { ok: true, value: id };
  }
  if (await accounts().hasPayer(env, orgId, target_id)) return { ok: true, value: target_id };
  return refuse("not_found", `no key or person ${target_id}`, "target_id");
}

async function findRepeated(env: Env, caller: Caller, options: CreateOptions) {
  const scope = ofOrganization(caller.orgId);
  const found = await replay(env, scope, OPERATION, options, (id) => findBudget(env.DB, caller.orgId, id));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: await viewOf(env, caller.orgId, found.value), replayed: true } } as const;
}

async function viewOf(env: Env, orgId: string, row: Stored): Promise<BudgetView> {
  return budgetViewOf(row, await booksObject(env, orgId).budgets(orgId));
}

/** Of a budget that the books say nothing of nothing is spent. */
function budgetViewOf(row: Stored, states: readonly BudgetState[]): BudgetView {
  const state = states.find(({ budget_id }) => budget_id === row.id);
  return {
    object: "budget",
    id: row.id,
    target_kind: row.target_kind,
    target_id: row.target_id,
    limit_micros: row.limit_micros,
    spent_micros: state?.spent_micros ?? 0,
    reserved_micros: state?.reserved_micros ?? 0,
    thresholds_crossed: [...(state?.thresholds ?? [])],
    created_at: seconds(row.created_at),
    updated_at: seconds(row.updated_at),
  };
}
