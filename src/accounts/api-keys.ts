/**
 * Creates, rotates, changes and revokes keys. Nobody can create a key with more scopes or a wider reach than the
 * calling key. A token is shown once: the reply to a repeat does not contain it.
 */

import { type Caller, type Permission, permits, rolesWith } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { refuseDeleted } from "../kernel/kit/account-hooks.ts";
import { given } from "../kernel/kit/given.ts";
import { type CreateOptions, replay, toRemember } from "../kernel/kit/idempotency.ts";
import { keyReused, LOST_RIGHT, type Result, refuse } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { createdKeyOf, mintKey } from "./mint-key.ts";
import {
  findApiKey,
  insertApiKey,
  keyViewOf,
  type NewKey,
  revokeApiKey,
  rotateApiKey,
  updateApiKey,
} from "./queries/api-keys.ts";
import { findMember } from "./queries/people.ts";
import { findProject } from "./queries/projects.ts";
import { personBehind, whoStillMay } from "./queries/standing.ts";
import type { ApiKeyRow } from "./tables.ts";
import type { ApiKeyView, CreatedKey, KeyPatch, KeyRequest, RotateRequest } from "./wire.ts";

const CREATE = "createApiKey";
const ROTATE = "rotateApiKey";

type Made = Result<{ value: CreatedKey; replayed: boolean }>;

export async function createApiKey(
  env: Env,
  caller: Caller,
  { project, expires_at, ...request }: KeyRequest,
  options: CreateOptions,
): Promise<Made> {
  const { now } = options;
  const before = await findRepeated(env, caller, CREATE, options);
  if (before !== null) return before;
  const refused = refuseScopes(caller, request.scopes);
  if (refused !== null) return refused;
  if (expires_at !== null && expires_at * 1000 <= now) {
    return refuse("invalid_request", "expires_at: is in the past", "expires_at");
  }
  const outlasting = refuseMore(caller, expires_at, request.requests_per_minute);
  if (outlasting !== null) return outlasting;
  const placed = await projectOf(env, caller, project);
  if (!placed.ok) return placed;
  const ends = expires_at === null ? null : expires_at * 1000;
  const maker_id = await personBehind(databaseOf(env), caller.orgId, caller.who);
  const owner = { project_id: placed.value, person_id: null, created_by: caller.who, maker_id };
  const { row, token } = mintKey(env, { ...request, ...owner, expires_at: ends }, { orgId: caller.orgId, now });
  const outcome = await insertApiKey(databaseOf(env), caller.orgId, row, toRemember(CREATE, row.id, options));
  if (outcome === "taken") return (await findRepeated(env, caller, CREATE, options)) ?? keyReused();
  if (outcome === "refused") return await whyNoRoom(env, caller, row);
  return { ok: true, value: { value: createdKeyOf(row, token), replayed: false } };
}

/** Creates a new key with the same attributes. The old key still works until the overlap ends. */
export async function rotateKey(
  env: Env,
  caller: Caller,
  id: string,
  { overlap_s }: RotateRequest,
  options: CreateOptions,
): Promise<Made> {
  const repeated = await findRotated(env, caller, id, options);
  if (repeated !== null) return repeated;
  const before = await findApiKey(databaseOf(env), caller, id);
  if (before === null) return notFound("key", id);
  const refused =
    refuseScopes(caller, before.scopes) ??
    refuseOthers(caller, before) ??
    ended(before, options.now) ??
    refuseLonger(caller, before);
  if (refused !== null) return refused;
  // The person who is shown the new token is responsible for it.
  const maker_id = before.person_id === null ? await personBehind(databaseOf(env), caller.orgId, caller.who) : null;
  const { row, token } = mintKey(
    env,
    { ...before, created_by: caller.who, maker_id },
    { orgId: caller.orgId, now: options.now },
  );
  const rotation = { before: id, next: row, ends: options.now + overlap_s * 1000 };
  const outcome = await rotateApiKey(databaseOf(env), caller.orgId, rotation, toRemember(ROTATE, row.id, options));
  if (outcome === "taken") return (await findRotated(env, caller, id, options)) ?? keyReused();
  if (outcome === "refused") return await whyNotRotated(env, caller, row, { id, now: options.now });
  return { ok: true, value: { value: createdKeyOf(row, token), replayed: false } };
}

/** Changes only the fields of the patch. */
export async function changeApiKey(
  env: Env,
  caller: Caller,
  id: string,
  patch: KeyPatch,
  now: number,
): Promise<Result<ApiKeyView>> {
  const before = await findApiKey(databaseOf(env), caller, id);
  if (before === null) return notFound("key", id);
  const rate = patch.requests_per_minute;
  const refused =
    refuseStronger(caller, before) ??
    refuseScopes(caller, patch.scopes ?? []) ??
    (rate === undefined ? null : refuseRate(caller, rate));
  if (refused !== null) return refused;
  if (patch.scopes !== undefined && before.person_id !== null) {
    const message = `${id} is a person's key and has the scopes of the person's role: to change the role, use PATCH /v1/people/${before.person_id}`;
    return refuse("conflict", message, "scopes");
  }
  // The person who sets the scopes is responsible for the key from then on.
  const maker_id = patch.scopes === undefined ? null : await personBehind(databaseOf(env), caller.orgId, caller.who);
  const changes = { ...given(patch), ...(maker_id !== null && { maker_id }) };
  const after = await updateApiKey(databaseOf(env), caller, id, changes, { who: caller.who, now });
  if (after === null) {
    const may = await whoStillMay(databaseOf(env), ofOrganization(caller.orgId), caller.who, "admin", now);
    return may === null ? refuse("forbidden", LOST_RIGHT, null) : refuse("conflict", `${id} was revoked`, "id");
  }
  return { ok: true, value: keyViewOf(after) };
}

/** A key that is already revoked does not change. */
export async function revokeKey(env: Env, caller: Caller, id: string, now: number): Promise<Result<ApiKeyView>> {
  const before = await findApiKey(databaseOf(env), caller, id);
  if (before === null) return notFound("key", id);
  const refused = refuseStronger(caller, before);
  if (refused !== null) return refused;
  await revokeApiKey(databaseOf(env), caller, id, now);
  const key = await findApiKey(databaseOf(env), caller, id);
  return key === null ? notFound("key", id) : { ok: true, value: keyViewOf(key) };
}

/** Nobody can create a key that lasts longer, or allows more requests, than the calling key. `expires_at`: seconds. */
function refuseMore(caller: Caller, expires_at: number | null, rate: number | null): Result<never> | null {
  const { expiresAt } = caller;
  if (expiresAt !== null && (expires_at === null || expires_at * 1000 > expiresAt)) {
    const message = `expires_at: your own key ends at ${Math.floor(expiresAt / 1000)}, and keys you create cannot last longer`;
    return refuse("forbidden", message, "expires_at");
  }
  return refuseRate(caller, rate);
}

/** The new key's expiry and limit must be within those of the calling key. A key may always replace itself. */
function refuseLonger(caller: Caller, { id, expires_at, requests_per_minute }: ApiKeyRow): Result<never> | null {
  if (caller.who === id) return null;
  return refuseMore(caller, expires_at === null ? null : expires_at / 1000, requests_per_minute);
}

function refuseRate({ perMinute: { own } }: Caller, rate: number | null): Result<never> | null {
  if (own === null || (rate !== null && rate <= own)) return null;
  const message = `requests_per_minute: your own key has ${own}, and keys you create cannot have more`;
  return refuse("forbidden", message, "requests_per_minute");
}

/** Otherwise a caller with access to the new key could do more than with its own key. */
function refuseScopes({ permissions }: Caller, scopes: readonly Permission[]): Result<never> | null {
  const missing = scopes.find((scope) => !permits(permissions, scope));
  if (missing === undefined) return null;
  return refuse("forbidden", `this key lacks the scope ${missing}, so it cannot grant it`, "scopes");
}

/** Nobody can change or revoke a key with scopes that the caller lacks, except the key itself. */
function refuseStronger({ who, permissions }: Caller, { id, scopes }: ApiKeyRow): Result<never> | null {
  const missing = scopes.find((scope) => !permits(permissions, scope));
  if (missing === undefined || who === id) return null;
  return refuse("forbidden", `this key lacks the scope ${missing}, which ${id} has`, "id");
}

/** A person's key identifies its user as that person, so only the person may rotate it. */
function refuseOthers({ who }: Caller, { id, person_id }: ApiKeyRow): Result<never> | null {
  if (person_id === null || who === id || who === person_id) return null;
  const message = `${id} is another person's key: to replace it, revoke it and invite the person again`;
  return refuse("forbidden", message, "id");
}

function ended({ id, revoked_at, rotated_to, expires_at }: ApiKeyRow, now: number): Result<never> | null {
  if (revoked_at !== null) return refuse("conflict", `${id} was revoked`, "id");
  if (rotated_to !== null) return refuse("conflict", `${id} was rotated already, to ${rotated_to}`, "id");
  if (expires_at !== null && expires_at <= now) return refuse("conflict", `${id} has expired`, "id");
  return null;
}

/** Another request was faster, or the maximum is reached. */
async function whyNotRotated(
  env: Env,
  caller: Caller,
  next: NewKey,
  { id, now }: { readonly id: string; readonly now: number },
): Promise<Result<never>> {
  const key = await findApiKey(databaseOf(env), caller, id);
  if (key === null) return notFound("key", id);
  return ended(key, now) ?? (await whyNoRoom(env, caller, next));
}

/** The id of the new key's project; null for the whole organisation, if the calling key has the same reach. */
async function projectOf(env: Env, caller: Caller, project: string | null): Promise<Result<string | null>> {
  if (project === null && caller.projectId === null) return { ok: true, value: null };
  if (project === null) {
    const message = "this key is for one project, so it cannot create one for the whole organisation: set project";
    return refuse("forbidden", message, "project");
  }
  const found = await findProject(databaseOf(env), caller, project);
  if (found === null) return refuse("not_found", `no project ${project}`, "project");
  return { ok: true, value: found.id };
}

/** The project is being deleted, the maker lost the permissions, or the maximum of active keys is reached. */
async function whyNoRoom(
  env: Env,
  caller: Caller,
  { project_id: projectId, maker_id, scopes }: NewKey,
): Promise<Result<never>> {
  const going = await refuseDeleted(env, caller.orgId);
  if (going !== null) return going;
  if (projectId !== null && (await findProject(databaseOf(env), caller, projectId)) === null) {
    return refuse("conflict", `${projectId} is being deleted`, null);
  }
  const maker = maker_id === null ? null : await findMember(databaseOf(env), caller.orgId, maker_id);
  if (maker_id !== null && !rolesWith(scopes).some((role) => role === maker?.role)) {
    return refuse(
      "forbidden",
      `the person ${maker_id} no longer has all permissions of the new key: ask an owner for a role that has them`,
      "scopes",
    );
  }
  const message = `the organisation already has ${LIMITS.keys} active keys, the maximum: revoke some first`;
  return refuse("conflict", message, null);
}

async function findRepeated(env: Env, caller: Caller, operation: string, options: CreateOptions) {
  const scope = ofOrganization(caller.orgId);
  const found = await replay(env, scope, operation, options, (id) => findApiKey(databaseOf(env), caller, id));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: createdKeyOf(found.value, null), replayed: true } } as const;
}

/** The Idempotency-Key belongs to a rotation of this key, and of no other key. */
async function findRotated(env: Env, caller: Caller, id: string, options: CreateOptions): Promise<Made | null> {
  const found = await findRepeated(env, caller, ROTATE, options);
  if (found === null || !found.ok) return found;
  const before = await findApiKey(databaseOf(env), caller, id);
  return before?.rotated_to === found.value.value.id ? found : keyReused();
}
