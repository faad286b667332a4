/**
 * Postings that an operator makes to an organisation's ledger: payments and adjustments. The Idempotency-Key gives each
 * posting a name, and the ledger posts a name once: a repeat, also after a kill, posts nothing more.
 */

import type { Caller } from "../contract/identity.ts";
import type { LedgerEntry } from "../contract/money.ts";
import { ofOrganization } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { recall, remember } from "../kernel/db/idempotency-keys.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { type CreateOptions, isSameRequest, toRemember } from "../kernel/kit/idempotency.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { keyReused, type Result, refuse } from "../kernel/messages/refusal.ts";
import type { EntriesPage, Posting } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";
import { PAID } from "./stripe-events.ts";
import type { AdjustmentRequest, PostedEntry, TopUpRequest } from "./wire.ts";

const TOP_UP = "createTopUp";
const ADJUSTMENT = "createAdjustment";
const AGAINST = { refund: "refunds", dispute: "disputes", correction: "corrections" } as const;
const NAME_CHARACTERS = 32;

/** `id`: the `source_id` of the entry in the ledger. */
type Posted = Result<{ value: PostedEntry; id: string; replayed: boolean }>;

export async function createTopUp(
  env: Env,
  caller: Caller,
  { organization, amount_micros, note }: TopUpRequest,
  options: CreateOptions,
): Promise<Posted> {
  const named = await nameOf(env, caller, TOP_UP, organization, options);
  if (!named.ok) return named;
  const source_id = `top_${named.value}`;
  const about = { kind: "top_up", source_id, period: PAID, project_id: null } as const;
  return await post(
    env,
    { orgId: organization, ...about, amount_micros, against: "paid_in/operator", note },
    source_id,
  );
}

/** Uses the source of the entry that it adjusts, so that both are found together. */
export async function createAdjustment(
  env: Env,
  caller: Caller,
  { organization, kind, amount_micros, source, note }: AdjustmentRequest,
  options: CreateOptions,
): Promise<Posted> {
  const named = await nameOf(env, caller, ADJUSTMENT, organization, options);
  if (!named.ok) return named;
  const entry = await findEntry(env, organization, source);
  if (entry === null) {
    return refuse("not_found", `the ledger of ${organization} has no entry of ${source}`, "source");
  }
  const period = `adj_${named.value}`;
  const about = { kind, source_id: source, period, project_id: entry.project_id, against: AGAINST[kind] };
  return await post(env, { orgId: organization, ...about, amount_micros, note }, source);
}

/**
 * The name that the key gives to the posting, permanent and unique in the organisation. The key is stored before
 * anything is posted: the same key with another body is refused from then on.
 */
async function nameOf(
  env: Env,
  caller: Caller,
  operation: string,
  organization: string,
  options: CreateOptions,
): Promise<Result<string>> {
  const { idempotencyKey: key } = options;
  if (key === null) {
    return refuse(
      "invalid_request",
      "Idempotency-Key: is required, so that a repeat does not post twice",
      "Idempotency-Key",
    );
  }
  if (!(await accounts().settingsOf(env, organization)).open) {
    return noOrganization(organization);
  }
  const name = sha256Hex(JSON.stringify([caller.orgId, operation, key])).slice(0, NAME_CHARACTERS);
  const made = toRemember(operation, name, options);
  if (made !== null) await remember(databaseOf(env), caller.orgId, made);
  const known = await recall(databaseOf(env), ofOrganization(caller.orgId), operation, key);
  return isSameRequest(known?.request_hash ?? null, options) ? { ok: true, value: name } : keyReused();
}

function noOrganization(id: string): Result<never> {
  return refuse("not_found", `no organization ${id}`, "organization");
}

/** The newest entry of this source; null if there is none. */
async function findEntry(env: Env, organization: string, source_id: string): Promise<LedgerEntry | null> {
  for (let before: number | null = null; ; ) {
    const of = { before, limit: 1, kind: null, run_id: null, source_id };
    const { entries, next }: EntriesPage = await ledgerObject(env, organization).entries(of);
    const [entry] = entries;
    if (entry !== undefined || next === null) return entry ?? null;
    before = next;
  }
}

async function post(env: Env, posting: Posting, id: string): Promise<Posted> {
  const { posted, entry, balance_micros, gone } = await ledgerObject(env, posting.orgId).post(posting);
  if (gone) return noOrganization(posting.orgId);
  const value: PostedEntry = { object: "posted_entry", organization_id: posting.orgId, entry, balance_micros };
  return { ok: true, value: { value, id, replayed: !posted } };
}
