/**
 * Fleets are created, changed and deleted here; their replicas: replicas.ts. What changes is stored first, and then the
 * fleet's object is told of it: what it is not told it reads by itself.
 */

import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import type { Page } from "../db/page.ts";
import { RUNS_TOLD, trainingOn } from "../db/runs.ts";
import { projectGone, type Result, refuse } from "../runtime/contract/refusal.ts";
import { type CreateOptions, replay, toRemember } from "../runtime/kit/idempotency.ts";
import { minting } from "../runtime/kit/secrets.ts";
import { deleteUnused } from "../runtime/service/delete-unused.ts";
import { noteProject } from "../runtime/service/note-project.ts";
import { notFound } from "../runtime/service/read-run.ts";
import {
  deleteFleet as deleteUnusedFleet,
  findFleet,
  insertFleet,
  listFleets as listStoredFleets,
  type NamedFleet,
  runsOnFleet,
  updateFleet,
} from "./queries.ts";
import { newReplicas, refuseReplica, refuseTwin } from "./replicas.ts";
import { fleetViews, refusePaused, tellFleet } from "./views.ts";
import type { FleetPatch, FleetRequest, FleetView } from "./wire.ts";

const OPERATION = "createFleet";

/** Makes a fleet with its first replicas, each checked and probed before it is stored. */
export async function createFleet(
  env: Env,
  scope: Scope,
  request: FleetRequest,
  options: CreateOptions,
): Promise<Result<{ value: FleetView; replayed: boolean }>> {
  const taken = async () => (await findRepeated(env, scope, options)) ?? nameTaken(request.name);
  const before = await findRepeated(env, scope, options);
  if (before !== null) return before;
  const refused = await refuseReplicas(env, scope, request, options.now);
  if (refused !== null) return refused;
  if ((await findFleet(env.DB, scope, request.name)) !== null) return await taken();
  const { replicas, ...given } = request;
  const { now } = options;
  const id = mintId("fl", minting(env, now));
  const fleet = { id, ...given, created_at: now, updated_at: now, deleted_at: null };
  const first = await newReplicas(env, scope, id, replicas, now);
  const key = toRemember(OPERATION, id, options);
  const kept = await insertFleet(env.DB, scope, fleet, first, key);
  if (kept === "taken") return await taken();
  if (kept === "gone") return projectGone();
  if (kept === "full") {
    return refuse("conflict", `a project has ${LIMITS.fleetsPerProject} fleets at most: delete some`, "name");
  }
  if (key !== null) await noteProject(env, scope, now);
  await tellFleet(env, scope, id);
  return await made(env, scope, owned(scope, fleet), false);
}

/** One page of fleets. */
export async function listFleets(env: Env, scope: Scope, page: Page): Promise<FleetView[]> {
  return await fleetViews(env, scope, await listStoredFleets(env.DB, scope, page));
}

export async function readFleet(env: Env, scope: Scope, nameOrId: string): Promise<Result<FleetView>> {
  const fleet = await findFleet(env.DB, scope, nameOrId);
  return fleet === null ? notFound("fleet", nameOrId) : await shown(env, scope, fleet);
}

/**
 * Only what the patch names changes. Refused while a training run that has not ended has the fleet: another mode, or
 * another name of its adapters, by which its replicas' weights would be told from others no more.
 */
export async function changeFleet(
  env: Env,
  scope: Scope,
  nameOrId: string,
  patch: FleetPatch,
  now: number,
): Promise<Result<FleetView>> {
  const before = await findFleet(env.DB, scope, nameOrId);
  if (before === null) return notFound("fleet", nameOrId);
  const { mode, adapter } = patch.update ?? before.update;
  const { removed } = patch.update === undefined ? {} : before.update;
  const untrained = removed !== undefined || mode !== before.update.mode || adapter !== before.update.adapter;
  const changes = { ...patch, updated_at: now };
  let after: Awaited<ReturnType<typeof updateFleet>> = null;
  const done = await deleteUnused(env, scope, async () => {
    after = await updateFleet(env.DB, scope, before.id, changes, untrained);
    const using = after === null && untrained ? await trainingOn(env.DB, scope, before.id).limit(RUNS_TOLD) : [];
    return { deleted: after !== null, usedBy: using.map(({ id }) => id) };
  });
  if (!done.ok) return refuse("conflict", done.error.message, "update");
  return await changed(env, scope, before, after);
}

async function changed(
  env: Env,
  scope: Scope,
  before: NamedFleet,
  after: Awaited<ReturnType<typeof updateFleet>>,
): Promise<Result<FleetView>> {
  if (after === null) return notFound("fleet", before.name);
  if (after === "taken") return refuse("conflict", "there is a fleet of that name already", "name");
  await tellFleet(env, scope, after.id);
  return await shown(env, scope, after);
}

/** Refused while a run that has not ended uses it, or an engine of it is paused. Its replicas and their keys go with it. */
export async function deleteFleet(
  env: Env,
  scope: Scope,
  nameOrId: string,
  now: number,
): Promise<Result<{ id: string }>> {
  const fleet = await findFleet(env.DB, scope, nameOrId);
  if (fleet === null) return notFound("fleet", nameOrId);
  const { id } = fleet;
  // One that is used is refused before anything is held off at its replicas.
  const used = async () => ({ deleted: false, usedBy: await runsOnFleet(env.DB, scope, id) });
  const unused = await deleteUnused(env, scope, used);
  if (!unused.ok) return unused;
  const paused = await refusePaused(env, scope, id, null);
  if (paused !== null) return paused;
  const done = await deleteUnused(env, scope, () => deleteUnusedFleet(env.DB, scope, id, now));
  if (!done.ok) return done;
  await tellFleet(env, scope, id);
  return { ok: true, value: { id } };
}

async function refuseReplicas(
  env: Env,
  scope: Scope,
  { replicas, update }: FleetRequest,
  now: number,
): Promise<Result<never> | null> {
  for (const [at, replica] of replicas.entries()) {
    const [path, before] = [`replicas.${at}.`, replicas.slice(0, at)];
    const refused = await refuseReplica(env, scope, replica, now, path);
    if (refused !== null) return refused;
    if (before.some(({ name }) => name === replica.name)) {
      return refuse("invalid_request", `two replicas are called ${replica.name}`, `${path}name`);
    }
    const twin = refuseTwin("invalid_request", update.mode, replica, before, path);
    if (twin !== null) return twin;
  }
  return null;
}

async function findRepeated(env: Env, scope: Scope, options: CreateOptions) {
  const found = await replay(env, scope, OPERATION, options, (id) => findFleet(env.DB, scope, id));
  if (found === null || !found.ok) return found;
  return await made(env, scope, found.value, true);
}

async function made(env: Env, scope: Scope, fleet: NamedFleet, replayed: boolean) {
  const view = await shown(env, scope, fleet);
  return view.ok ? ({ ok: true, value: { value: view.value, replayed } } as const) : view;
}

async function shown(env: Env, scope: Scope, fleet: NamedFleet): Promise<Result<FleetView>> {
  const [view] = await fleetViews(env, scope, [fleet]);
  return view === undefined ? notFound("fleet", fleet.name) : { ok: true, value: view };
}

function owned<Row extends object>({ orgId, projectId }: Scope, row: Row) {
  return { ...row, org_id: orgId, project_id: projectId };
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `there is a fleet called ${name} already`, "name");
}
