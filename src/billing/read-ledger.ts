/** Reads from an organisation's ledger: its balance, its entries, and whether everything adds up. */

import { type Caller, permits } from "../contract/identity.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { type Result, refuse, refuseOneProject } from "../kernel/messages/refusal.ts";
import type { BalanceState, EntriesPage, EntriesQuery } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";
import type { BalanceView, LedgerVerification } from "./wire.ts";

/** `asked`: another organisation, for operators only; null: the caller's. */
export async function readBalance(env: Env, caller: Caller, asked: string | null): Promise<Result<BalanceView>> {
  const organization = await organizationOf(env, caller, asked);
  if (!organization.ok) return organization;
  const id = organization.value;
  return { ok: true, value: balanceViewOf(id, await ledgerObject(env, id).balance(id)) };
}

/** A page of entries of the caller's organisation, newest first. */
export async function readLedger(env: Env, caller: Caller, query: EntriesQuery): Promise<Result<EntriesPage>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  return { ok: true, value: await ledgerObject(env, caller.orgId).entries(query) };
}

/** Recomputes everything and compares it with the stored values. */
export async function verifyLedger(
  env: Env,
  caller: Caller,
  asked: string | null,
): Promise<Result<LedgerVerification>> {
  const organization = await organizationOf(env, caller, asked);
  if (!organization.ok) return organization;
  const id = organization.value;
  const { differences, ...of } = await ledgerObject(env, id).verify(id);
  const ok = differences.length === 0 && of.balance_micros === of.recomputed_micros;
  const found = { ok, ...of, differences: [...differences] };
  return { ok: true, value: { object: "ledger_verification", organization_id: id, ...found } };
}

async function organizationOf(env: Env, { orgId, projectId, permissions }: Caller, asked: string | null) {
  if (asked !== null && permissions.includes("operator")) {
    const { open } = await accounts().settingsOf(env, asked);
    return open ? ({ ok: true, value: asked } as const) : notFoundHere(asked);
  }
  if (asked !== null && asked !== orgId) return notFoundHere(asked);
  if (!permits(permissions, "billing:read")) {
    return refuse("forbidden", "organization: is required for operators", "organization");
  }
  return refuseOneProject({ projectId }) ?? ({ ok: true, value: orgId } as const);
}

function notFoundHere(asked: string): Result<never> {
  return refuse("not_found", `no organization ${asked}`, "organization");
}

export function balanceViewOf(
  organization_id: string,
  { billing, balance_micros, reserved_micros, credit_limit_micros, entries }: BalanceState,
): BalanceView {
  const below = billing === "postpaid" ? credit_limit_micros : 0;
  const unbounded = billing === "off" || below === null;
  return {
    object: "balance",
    organization_id,
    billing,
    balance_micros,
    reserved_micros,
    available_micros: unbounded ? null : Math.max(0, balance_micros - reserved_micros + below),
    credit_limit_micros,
    entries,
  };
}
