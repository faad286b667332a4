/** Budgets of an organisation: created, shown with this month's spending, changed, deleted. */

import type { Caller } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { notifyAccount } from "../kernel/account/tell-account.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { accounts, refuseDeleted } from "../kernel/kit/account-hooks.ts";
import { type CreateOptions, createOnce, type Made } from "../kernel/kit/idempotency.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { keyReused, type Result, refuse } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { deleteBudget, findBudget, insertBudget, updateBudget } from "./queries/budgets.ts";
import type { BudgetState } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";
import type { BudgetRow } from "./tables.ts";
import type { BudgetPatch, BudgetRequest, BudgetView } from "./wire.ts";

export async function createBudget(
  env: Env,
  caller: Caller,
  request: BudgetRequest,
  options: CreateOptions,
): Promise<Result<Made<BudgetRow>>> {
  const { now } = options;
  const { target_kind, limit_micros } = request;
  const made = await createOnce(env, ofOrganization(caller.orgId), options, {
    operation: "createBudget",
    find: (id) => findBudget(databaseOf(env), caller.orgId, id),
    async make(): Promise<Result<BudgetRow>> {
      const target = await targetOf(env, caller.orgId, request);
      if (!target.ok) return target;
      const times = { created_at: now, updated_at: now };
      const ids = { id: mintId("bud", minting(env, now)), org_id: caller.orgId, target_id: target.value };
      return { ok: true, value: { ...ids, target_kind, limit_micros, ...times } };
    },
    insert: (budget, key) => insertBudget(databaseOf(env), caller.orgId, budget, key),
    refusals: {
      taken: keyReused,
      target_taken: ({ target_id }) => {
        const message = `a budget for ${target_id} already exists: PATCH it`;
        return refuse("conflict", message, target_kind === "organization" ? "target_kind" : "target_id");
      },
      full: async () => (await refuseDeleted(env, caller.orgId)) ?? tooMany(),
    },
  });
  if (made.ok && !made.value.replayed) await notifyAccount(env, caller.orgId);
  return made;
}

function tooMany(): Result<never> {
  return refuse(
    "conflict",
    `the organisation already has ${LIMITS.budgets} budgets, the maximum: delete some first`,
    null,
  );
}

/** Each budget with this month's spending, in the same order. */
export async function showBudgets(env: Env, orgId: string, budgets: readonly BudgetRow[]): Promise<BudgetView[]> {
  if (budgets.length === 0) return [];
  const states = await ledgerObject(env, orgId).budgets(orgId);
  return budgets.map((budget) => budgetViewOf(budget, states));
}

export async function changeBudget(
  env: Env,
  orgId: string,
  id: string,
  { limit_micros }: BudgetPatch,
  now: number,
): Promise<Result<BudgetRow>> {
  const budget = await updateBudget(databaseOf(env), orgId, id, { limit_micros, updated_at: now });
  if (budget === null) return notFound("budget", id);
  await notifyAccount(env, orgId);
  return { ok: true, value: budget };
}

export async function removeBudget(env: Env, orgId: string, id: string): Promise<Result<null>> {
  if (!(await deleteBudget(databaseOf(env), orgId, id))) return notFound("budget", id);
  await notifyAccount(env, orgId);
  return { ok: true, value: null };
}

/** The id of the budget's target, if it belongs to the organisation. */
async function targetOf(env: Env, orgId: string, { target_kind, target_id }: BudgetRequest): Promise<Result<string>> {
  if (target_kind === "organization") {
    if (target_id === undefined || target_id === orgId) return { ok: true, value: orgId };
    return refuse("not_found", `no organization ${target_id}`, "target_id");
  }
  if (target_id === undefined) {
    const what = target_kind === "project" ? "a project by its id or name" : "a key or a person by its id";
    return refuse("invalid_request", `target_id: is required: set it to ${what}`, "target_id");
  }
  if (target_kind === "project") {
    const id = await accounts().projectId(env, orgId, target_id);
    return id === null ? refuse("not_found", `no project ${target_id}`, "target_id") : { ok: true, value: id };
  }
  if (await accounts().hasPayer(env, orgId, target_id)) return { ok: true, value: target_id };
  return refuse("not_found", `no key or person ${target_id}`, "target_id");
}

/** A budget without a state in the ledger has no spending. */
function budgetViewOf(row: BudgetRow, states: readonly BudgetState[]): BudgetView {
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
