/**
 * Adds, changes, probes and removes replicas of a fleet. A replica is probed before it is stored, so that its
 * capabilities are shown from the start. A replica that does not answer is stored too, since it may be off only for
 * now.
 *
 * Invariants. A stored key is sent only to the server that it was given for. A replica may not be at an address where
 * the platform sells models, since tokens of a fleet are never charged.
 */

import type { ReplicaCapabilities, UpdateMode } from "../contract/fleet.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { outgoingFor } from "../kernel/endpoint/outgoing.ts";
import { refuseAddress } from "../kernel/kit/address.ts";
import { type CreateOptions, hashedWith, type Made } from "../kernel/kit/idempotency.ts";
import { PROCESS_PACE } from "../kernel/kit/request-pace.ts";
import { openSealed } from "../kernel/kit/sealed-values.ts";
import { minting, seal, sealContext, sealedKey } from "../kernel/kit/secrets.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { charges } from "../kernel/run/charges.ts";
import { createInProject } from "../kernel/service/create-in-project.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { placesOf } from "./access.ts";
import { aliasOf } from "./aliases.ts";
import type { Engine } from "./engine-calls.ts";
import { probeEngine } from "./engine-probe.ts";
import {
  deleteReplica as deleteStoredReplica,
  findFleet,
  findReplica,
  insertReplica,
  type NewReplica,
  type ReplicaChanges,
  replicasOf,
  updateReplica,
} from "./queries.ts";
import { strayKey } from "./replica-keys.ts";
import type { ReplicaRow } from "./tables.ts";
import { notifyFleet, refusePaused, replicaView } from "./views.ts";
import type { ReplicaPatch, ReplicaRequest, ReplicaView } from "./wire.ts";

/** The time for probing all replicas of a new fleet. The rest are probed on request. */
const PROBES_MS = 20_000;

/** CPU of probing one replica, in milliseconds. */
const PROBE_COST_MS = 8;

interface OfFleet {
  readonly fleet: string;
  readonly replica: string;
}

export async function listReplicas(env: Env, scope: Scope, fleet: string): Promise<Result<ReplicaView[]>> {
  const found = await findFleet(databaseOf(env), scope, fleet);
  if (found === null) return notFound("fleet", fleet);
  const rows = await replicasOf(databaseOf(env), scope, found.id);
  return { ok: true, value: await Promise.all(rows.map((row) => replicaView(env, scope, row))) };
}

/** Adds a replica to a fleet. `fleet`: its name or id. */
export async function addReplica(
  env: Env,
  scope: Scope,
  fleet: string,
  request: ReplicaRequest,
  asked: CreateOptions,
): Promise<Result<Made<ReplicaView>>> {
  const found = await findFleet(databaseOf(env), scope, fleet);
  if (found === null) return notFound("fleet", fleet);
  const find = (nameOrId: string) => findReplica(databaseOf(env), scope, found.id, nameOrId);
  const made = await createInProject(env, scope, hashedWith(`replica of ${found.id}`, asked), {
    operation: "addReplica",
    find,
    async make(): Promise<Result<NewReplica>> {
      const refused = await refuseReplica(env, scope, request, asked.now, "");
      if (refused !== null) return refused;
      if ((await find(request.name)) !== null) return nameTaken(request.name);
      const others = await replicasOf(databaseOf(env), scope, found.id);
      const alias = refuseAlias("conflict", found.update.mode, request, others);
      if (alias !== null) return alias;
      const [row] = await newReplicas(env, scope, found.id, [request], asked.now);
      if (row === undefined) throw new Error("a request makes a replica");
      return { ok: true, value: row };
    },
    insert: (replica, key) => insertReplica(databaseOf(env), scope, replica, key),
    refusals: { taken: () => nameTaken(request.name), gone: () => noRoom(env, scope, fleet) },
  });
  if (!made.ok) return made;
  const { value: replica, replayed } = made.value;
  if (!replayed) await notifyFleet(env, scope, found.id);
  return { ok: true, value: { value: await replicaView(env, scope, replica), replayed } };
}

/** Changes only the fields of the patch. A new address or key is probed. */
export async function changeReplica(
  env: Env,
  scope: Scope,
  of: OfFleet,
  patch: ReplicaPatch,
  now: number,
): Promise<Result<ReplicaView>> {
  const found = await lookUp(env, scope, of);
  if (!found.ok) return found;
  const before = found.value;
  const unkept = (await refuseReplica(env, scope, patch, now, "")) ?? refuseStrayKey(before, patch);
  const refused = unkept ?? (await refuseMove(env, scope, before, patch));
  if (refused !== null) return refused;
  const { api_key, control_key, base_url = before.base_url, control_url = before.control_url, ...plain } = patch;
  const access = {
    ...{ base_url, control_url },
    ...(api_key !== undefined && (await sealedKey(env, scope, before.id, api_key))),
    ...(control_key !== undefined && { sealed_control_key: await sealedOr(env, scope, before.id, control_key) }),
  };
  const changes = { ...plain, ...access, updated_at: now };
  const isOther = ["base_url", "control_url", "api_key", "control_key"].some((name) => name in patch);
  if (!isOther) return await stored(env, scope, before, changes);
  const capabilities = await probeStored(env, scope, { ...before, ...access }, now);
  if (!capabilities.ok) return capabilities;
  const moves = base_url !== before.base_url || control_url !== before.control_url;
  const paused = moves ? await refusePaused(env, scope, before.fleet_id, before.id) : null;
  if (paused !== null) return paused;
  return await stored(env, scope, before, { ...changes, capabilities: capabilities.value });
}

/** Probes a replica again. */
export async function probeReplica(env: Env, scope: Scope, of: OfFleet, now: number): Promise<Result<ReplicaView>> {
  const found = await lookUp(env, scope, of);
  if (!found.ok) return found;
  const capabilities = await probeStored(env, scope, found.value, now);
  if (!capabilities.ok) return capabilities;
  return await stored(env, scope, found.value, { capabilities: capabilities.value });
}

/** Its calls in flight continue. Refused while its engine is paused, since only its keys can resume it. */
export async function removeReplica(env: Env, scope: Scope, of: OfFleet): Promise<Result<{ id: string }>> {
  const found = await lookUp(env, scope, of);
  if (!found.ok) return found;
  const { id, fleet_id } = found.value;
  const paused = await refusePaused(env, scope, fleet_id, id);
  if (paused !== null) return paused;
  await deleteStoredReplica(databaseOf(env), scope, id);
  await notifyFleet(env, scope, fleet_id);
  return { ok: true, value: { id } };
}

export async function readReplica(env: Env, scope: Scope, of: OfFleet): Promise<Result<ReplicaView>> {
  const found = await lookUp(env, scope, of);
  return found.ok ? { ok: true, value: await replicaView(env, scope, found.value) } : found;
}

/** Why an address may not be a replica's. `at`: the path of the replica in the request, with a dot at the end. */
export async function refuseReplica(
  env: Env,
  scope: Scope,
  { base_url, control_url }: Pick<ReplicaPatch, "base_url" | "control_url">,
  now: number,
  at: string,
): Promise<Result<never> | null> {
  for (const [name, address] of Object.entries({ base_url, control_url })) {
    if (address === undefined || address === null) continue;
    const refused = await refuseAddress(env, scope, address, `${at}${name}`);
    if (refused !== null) return refused;
  }
  if (base_url === undefined) return null;
  if (!(await charges().offersAt(env, base_url, now))) return null;
  const message = "the platform itself serves models at this address: use an endpoint instead of a fleet";
  return refuse("url_not_allowed", message, `${at}base_url`);
}

interface Addressed {
  readonly base_url: string;
  readonly control_url?: string | null | undefined;
}

/**
 * Why no replica may be at these addresses in addition to `others`: both would be one engine, and loading weights onto
 * one replica would change the other unnoticed.
 */
export function refuseAlias(
  code: "conflict" | "invalid_request",
  mode: UpdateMode,
  { base_url, control_url = null }: Addressed,
  others: readonly (Addressed & { readonly name: string })[],
  at = "",
): Result<never> | null {
  const places = placesOf({ base_url, control_url });
  const placed = others.map((one) => ({
    name: one.name,
    places: placesOf({ base_url: one.base_url, control_url: one.control_url ?? null }),
  }));
  const alias = aliasOf(mode, { places }, placed);
  if (alias === undefined) return null;
  const param = alias.places.calls === places.calls ? "base_url" : "control_url";
  return refuse(code, `this is the engine of ${alias.name}: each replica needs its own engine`, `${at}${param}`);
}

async function refuseMove(
  env: Env,
  scope: Scope,
  before: ReplicaRow,
  { base_url = before.base_url, control_url = before.control_url }: ReplicaPatch,
): Promise<Result<never> | null> {
  if (base_url === before.base_url && control_url === before.control_url) return null;
  const fleet = await findFleet(databaseOf(env), scope, before.fleet_id);
  if (fleet === null) return notFound("fleet", before.fleet_id);
  const all = await replicasOf(databaseOf(env), scope, fleet.id);
  const others = all.filter(({ id }) => id !== before.id);
  return refuseAlias("conflict", fleet.update.mode, { base_url, control_url }, others);
}

/** The rows of new replicas, each probed. */
export async function newReplicas(
  env: Env,
  scope: Scope,
  fleet_id: string,
  requests: readonly ReplicaRequest[],
  now: number,
): Promise<NewReplica[]> {
  const outgoing = await outgoingFor(env, scope);
  const begun = performance.now();
  return await new Subrequests().six(requests, async (request) => {
    const { name, base_url, control_url = null, api_key = null, control_key = null, max_concurrent } = request;
    const id = mintId("rp", minting(env, now));
    const engine = { name, base_url, api_key, control_url, control_key, ...outgoing };
    const inTime = performance.now() - begun < PROBES_MS;
    if (inTime) PROCESS_PACE.charge(scope.orgId, PROBE_COST_MS, Date.now());
    return {
      ...{ id, fleet_id, name, base_url, control_url, max_concurrent, draining: false },
      ...(await sealedKey(env, scope, id, api_key)),
      sealed_control_key: await sealedOr(env, scope, id, control_key),
      capabilities: inTime ? await probeEngine(engine, { model: null, now }) : null,
      ...{ created_at: now, updated_at: now },
    };
  });
}

async function lookUp(env: Env, scope: Scope, { fleet, replica }: OfFleet): Promise<Result<ReplicaRow>> {
  const found = await findFleet(databaseOf(env), scope, fleet);
  if (found === null) return notFound("fleet", fleet);
  const row = await findReplica(databaseOf(env), scope, found.id, replica);
  if (row !== null) return { ok: true, value: row };
  return refuse("not_found", `the fleet ${found.name} has no replica ${replica}`, "replica");
}

async function noRoom(env: Env, scope: Scope, fleet: string): Promise<Result<never>> {
  if ((await findFleet(databaseOf(env), scope, fleet)) === null) return notFound("fleet", fleet);
  return refuse("conflict", `the fleet already has ${LIMITS.fleetReplicas} replicas, the maximum`, null);
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `the fleet already has a replica called ${name}`, "name");
}

function refuseStrayKey(before: ReplicaRow, patch: ReplicaPatch): Result<never> | null {
  const stray = strayKey(before, patch);
  if (stray === null) return null;
  const message = `a new server address needs ${stray} again, or api_key null for none`;
  return refuse("invalid_request", message, stray);
}

async function sealedOr(env: Env, scope: Scope, id: string, key: string | null): Promise<string | null> {
  return key === null ? null : await seal(env, key, sealContext(scope, id));
}

async function probeStored(
  env: Env,
  scope: Scope,
  replica: ReplicaRow,
  now: number,
): Promise<Result<ReplicaCapabilities>> {
  const engine = await openEngine(env, scope, replica);
  if (engine === null)
    return refuse("conflict", `a key of ${replica.name} cannot be decrypted: send it again`, "api_key");
  const model = replica.capabilities?.probed_model ?? null;
  return { ok: true, value: await probeEngine(engine, { model, now }) };
}

/** Null if a key was sealed under a secret that this deployment does not have. */
async function openEngine(env: Env, scope: Scope, replica: ReplicaRow): Promise<Engine | null> {
  const { id, name, base_url, control_url, sealed_key, sealed_control_key } = replica;
  const open = async (kind: "replica" | "replica_control", sealed: string | null) =>
    sealed === null ? null : await openSealed(env, { kind, scope, id, sealed });
  const outgoing = await outgoingFor(env, scope);
  try {
    const api_key = await open("replica", sealed_key);
    const control_key = await open("replica_control", sealed_control_key);
    return { name, base_url, control_url, api_key, control_key, ...outgoing };
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    return null;
  }
}

async function stored(
  env: Env,
  scope: Scope,
  before: ReplicaRow,
  changes: ReplicaChanges,
): Promise<Result<ReplicaView>> {
  const after = await updateReplica(databaseOf(env), scope, before, changes);
  if (after === null) {
    const message = `${before.name} was changed or deleted by another request: try again`;
    return refuse("conflict", message, null);
  }
  await notifyFleet(env, scope, after.fleet_id);
  return { ok: true, value: await replicaView(env, scope, after) };
}
