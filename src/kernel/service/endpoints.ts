/**
 * Creates, changes, probes and deletes endpoints. Active runs get a new `max_concurrent` or `rpm` at once. They use a
 * new address or key after at most five seconds, when every isolate has read the endpoint again.
 */

import type { EndpointCapabilities, EndpointPatch, EndpointRequest, EndpointView } from "../../contract/endpoint.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { probeEndpoint as probeServer } from "../clients/probe.ts";
import { databaseOf } from "../db/database.ts";
import {
  deleteEndpoint as deleteUnusedEndpoint,
  type EndpointChanges,
  endpointViewOf,
  findEndpoint,
  insertEndpoint,
  type NamedEndpoint,
  type NewEndpoint,
  updateEndpoint,
} from "../db/endpoints.ts";
import { accessOf, EndpointUnusable, forgetEndpoint } from "../endpoint/call.ts";
import { outgoingFor } from "../endpoint/outgoing.ts";
import { refuseAddress } from "../kit/address.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { idsOf, logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";
import { minting, sealedKey } from "../kit/secrets.ts";
import { projectGone, type Result, refuse } from "../messages/refusal.ts";
import { createInProject } from "./create-in-project.ts";
import { deleteUnused } from "./delete-unused.ts";
import { notFound } from "./read-run.ts";

/** Changes only the fields of the patch. A new address or key is probed again. */
export async function changeEndpoint(
  env: Env,
  scope: Scope,
  before: NamedEndpoint,
  patch: EndpointPatch,
  now: number,
): Promise<Result<NamedEndpoint>> {
  const refused = await refuseMove(env, scope, before, patch);
  if (refused !== null) return refused;
  const { api_key, ...plain } = patch;
  const sealed = api_key === undefined ? {} : await sealedKey(env, scope, before.id, api_key);
  const changes: EndpointChanges = { ...plain, ...sealed, updated_at: now };
  const { base_url = before.base_url } = plain;
  if (base_url === before.base_url && api_key === undefined) {
    return await stored(env, scope, before, changes);
  }
  // Fields that another server refuses say nothing about this one.
  const { refuses = base_url === before.base_url ? before.refuses : [] } = plain;
  const capabilities = await runProbe(env, scope, { ...before, ...sealed, base_url, refuses }, now);
  if (!capabilities.ok) return capabilities;
  return await stored(env, scope, before, { ...changes, ...probed(capabilities.value, refuses) });
}

/** The fields that a probe adds to an endpoint. */
function probed(
  capabilities: EndpointCapabilities,
  known: readonly string[] | null,
): Pick<NamedEndpoint, "capabilities" | "refuses"> {
  const refuses = [...new Set([...(known ?? []), ...(capabilities.refuses ?? [])])];
  return { capabilities, refuses: refuses.slice(0, LIMITS.refusedNames) };
}

/**
 * A stored key is sent only to the server it was given for. Otherwise anyone who may patch could send it to themselves.
 */
async function refuseMove(
  env: Env,
  scope: Scope,
  before: NamedEndpoint,
  { base_url, api_key }: EndpointPatch,
): Promise<Result<never> | null> {
  if (base_url === undefined) return null;
  const refused = await refuseAddress(env, scope, base_url, "base_url");
  if (refused !== null) return refused;
  const sameServer = new URL(base_url).origin === new URL(before.base_url).origin;
  if (sameServer || before.sealed_key === null || api_key !== undefined) return null;
  const message = "a new server address needs api_key again, or null for none";
  return refuse("invalid_request", message, "api_key");
}

/** Probes the endpoint again for what it supports. */
export async function probeEndpoint(
  env: Env,
  scope: Scope,
  nameOrId: string,
  now: number,
): Promise<Result<EndpointView>> {
  const endpoint = await findEndpoint(databaseOf(env), scope, nameOrId);
  if (endpoint === null) return notFound("endpoint", nameOrId);
  const capabilities = await runProbe(env, scope, endpoint, now);
  if (!capabilities.ok) return capabilities;
  const after = await stored(env, scope, endpoint, probed(capabilities.value, endpoint.refuses));
  return after.ok ? { ok: true, value: endpointViewOf(after.value) } : after;
}

/** Refused while an unfinished run uses it. */
export async function deleteEndpoint(
  env: Env,
  scope: Scope,
  { id }: NamedEndpoint,
  now: number,
): Promise<Result<{ deleted: boolean }>> {
  const done = await deleteUnused(env, scope, () => deleteUnusedEndpoint(databaseOf(env), scope, id, now));
  if (done.ok) forgetEndpoint(scope, id);
  return done;
}

async function runProbe(
  env: Env,
  scope: Scope,
  endpoint: Pick<NamedEndpoint, "id" | "base_url" | "sealed_key" | "capabilities" | "refuses" | "silence_limit_s">,
  now: number,
): Promise<Result<EndpointCapabilities>> {
  try {
    const access = await accessOf(env, scope, endpoint);
    const usual = endpoint.capabilities?.probed_model ?? null;
    return { ok: true, value: await probeServer({ ...access, model: null, usual, now }) };
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return refuse("conflict", `${thrown.message}: send it again`, "api_key");
  }
}

async function stored(
  env: Env,
  scope: Scope,
  before: NamedEndpoint,
  changes: EndpointChanges,
): Promise<Result<NamedEndpoint>> {
  const { id, name } = before;
  const after = await updateEndpoint(databaseOf(env), scope, before, changes);
  forgetEndpoint(scope, id);
  await notifyRuns(env, scope, id);
  if (after === null) return await movedMeanwhile(env, scope, before);
  if (after === "taken") return nameTaken(changes.name ?? name);
  return { ok: true, value: after };
}

/** If the endpoint's object cannot be reached now, it reads the change by itself minutes later. */
async function notifyRuns(env: Env, scope: Scope, id: string): Promise<void> {
  try {
    await endpointObject(env, scope, id).changed();
  } catch (thrown) {
    logError("the endpoint was not notified of its change", idsOf({ scope, endpoint_id: id }), thrown);
  }
}

/** The check whether the key may go to the address used the old row, so the patch must not apply to a newer one. */
async function movedMeanwhile(env: Env, scope: Scope, { id, name }: NamedEndpoint): Promise<Result<never>> {
  if ((await findEndpoint(databaseOf(env), scope, id)) === null) return notFound("endpoint", name);
  const message = `the address or key of ${name} was changed by another request: try again`;
  return refuse("conflict", message, null);
}

/**
 * Creates an endpoint: checks it, probes it, seals its key, and stores it. The probe comes before the write, so that
 * the endpoint shows from the start what it supports. The endpoint is created whatever the probe finds, because its
 * server may just be off.
 */
export function createEndpoint(env: Env, scope: Scope, request: EndpointRequest, options: CreateOptions) {
  const find = (nameOrId: string) => findEndpoint(databaseOf(env), scope, nameOrId);
  return createInProject(env, scope, options, {
    operation: "createEndpoint",
    find,
    async make() {
      const refused = await refuseAddress(env, scope, request.base_url, "base_url");
      if (refused !== null) return refused;
      if ((await find(request.name)) !== null) return nameTaken(request.name);
      return { ok: true, value: await rowOf(env, scope, request, options.now) };
    },
    insert: (endpoint, key) => insertEndpoint(databaseOf(env), scope, endpoint, key),
    refusals: { taken: () => nameTaken(request.name), gone: projectGone },
  });
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `an endpoint called ${name} already exists`, "name");
}

async function rowOf(
  env: Env,
  scope: Scope,
  { probe, model, api_key, ...given }: EndpointRequest,
  now: number,
): Promise<NewEndpoint> {
  const id = mintId("ep", minting(env, now));
  const access = { base_url: given.base_url, api_key: api_key ?? null };
  const asked = {
    ...access,
    ...(await outgoingFor(env, scope)),
    model: model ?? null,
    usual: null,
    refuses: given.refuses,
    now,
  };
  return {
    id,
    ...given,
    ...(await sealedKey(env, scope, id, access.api_key)),
    ...(probe ? probed(await probeServer(asked), given.refuses) : { capabilities: null }),
    created_at: now,
    updated_at: now,
    deleted_at: null,
  };
}
