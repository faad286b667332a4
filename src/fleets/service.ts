/**
 * Creates, changes and deletes fleets; for replicas see replicas.ts. A change is stored first, and then the fleet
 * object is notified. If the notification is lost, the object reads the change itself.
 */

import type { UpdateMode } from "../contract/fleet.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { RUNS_LISTED, trainingOn } from "../kernel/db/runs.ts";
import type { CreateOptions, Made } from "../kernel/kit/idempotency.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { projectGone, type Result, refuse } from "../kernel/messages/refusal.ts";
import { createInProject } from "../kernel/service/create-in-project.ts";
import { deleteUnused } from "../kernel/service/delete-unused.ts";
import { notFound } from "../kernel/service/read-run.ts";
import {
  deleteFleet as deleteUnusedFleet,
  findFleet,
  insertFleet,
  type NamedFleet,
  type NewFleet,
  replicasOfAll,
  runsOnFleet,
  updateFleet,
} from "./queries.ts";
import { newReplicas, refuseAlias, refuseReplica } from "./replicas.ts";
import { fleetViewOf, notifyFleet, refusePaused, standingOf } from "./views.ts";
import type { FleetPatch, FleetRequest, FleetView } from "./wire.ts";

/** Fleets with the state of their replicas, in the same order. */
export async function showFleets(env: Env, scope: Scope, fleets: readonly NamedFleet[]): Promise<FleetView[]> {
  const subrequests = new Subrequests();
  const ids = fleets.map(({ id }) => id);
  const replicas = await subrequests.fetch(() => replicasOfAll(databaseOf(env), scope, ids));
  return await subrequests.objectAll(fleets, async (fleet) => {
    const own = replicas.filter(({ fleet_id }) => fleet_id === fleet.id);
    return fleetViewOf(fleet, own, await standingOf(env, scope, fleet.id));
  });
}

/** Creates a fleet with its first replicas. Each is checked and probed before it is stored. */
export async function createFleet(
  env: Env,
  scope: Scope,
  { replicas, ...given }: FleetRequest,
  options: CreateOptions,
): Promise<Result<Made<NamedFleet>>> {
  const { now } = options;
  const find = (nameOrId: string) => findFleet(databaseOf(env), scope, nameOrId);
  const made = await createInProject(env, scope, options, {
    operation: "createFleet",
    find,
    async make(): Promise<Result<NewFleet>> {
      const refused = await refuseReplicas(env, scope, replicas, given.update.mode, now);
      if (refused !== null) return refused;
      if ((await find(given.name)) !== null) return nameTaken(given.name);
      const id = mintId("fl", minting(env, now));
      return { ok: true, value: { id, ...given, created_at: now, updated_at: now, deleted_at: null } };
    },
    async insert(fleet, key) {
      const first = await newReplicas(env, scope, fleet.id, replicas, now);
      return await insertFleet(databaseOf(env), scope, fleet, first, key);
    },
    refusals: { taken: () => nameTaken(given.name), gone: projectGone, full: tooMany },
  });
  if (made.ok && !made.value.replayed) await notifyFleet(env, scope, made.value.value.id);
  return made;
}

/**
 * Changes only the fields of the patch. Refused while an unfinished training run uses the fleet: another mode, or
 * another adapter name, since the weights of the replicas could no longer be identified.
 */
export async function changeFleet(
  env: Env,
  scope: Scope,
  before: NamedFleet,
  patch: FleetPatch,
  now: number,
): Promise<Result<NamedFleet>> {
  const { mode, adapter } = patch.update ?? before.update;
  const { removed } = patch.update === undefined ? {} : before.update;
  const untrained = removed !== undefined || mode !== before.update.mode || adapter !== before.update.adapter;
  const changes = { ...patch, updated_at: now };
  let after: Awaited<ReturnType<typeof updateFleet>> = null;
  const done = await deleteUnused(env, scope, async () => {
    after = await updateFleet(databaseOf(env), scope, before.id, changes, untrained);
    const using =
      after === null && untrained ? await trainingOn(databaseOf(env), scope, before.id).limit(RUNS_LISTED) : [];
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
): Promise<Result<NamedFleet>> {
  if (after === null) return notFound("fleet", before.name);
  if (after === "taken") return refuse("conflict", "a fleet of that name already exists", "name");
  await notifyFleet(env, scope, after.id);
  return { ok: true, value: after };
}

/** Refused while an unfinished run uses it, or an engine is paused. Its replicas and keys are deleted too. */
export async function deleteFleet(
  env: Env,
  scope: Scope,
  { id }: NamedFleet,
  now: number,
): Promise<Result<{ deleted: boolean }>> {
  // A fleet in use is refused before any of its replicas is held.
  const used = async () => ({ deleted: false, usedBy: await runsOnFleet(databaseOf(env), scope, id) });
  const unused = await deleteUnused(env, scope, used);
  if (!unused.ok) return unused;
  const paused = await refusePaused(env, scope, id, null);
  if (paused !== null) return paused;
  const done = await deleteUnused(env, scope, () => deleteUnusedFleet(databaseOf(env), scope, id, now));
  if (done.ok) await notifyFleet(env, scope, id);
  return done;
}

async function refuseReplicas(
  env: Env,
  scope: Scope,
  replicas: FleetRequest["replicas"],
  mode: UpdateMode,
  now: number,
): Promise<Result<never> | null> {
  for (const [at, replica] of replicas.entries()) {
    const [path, before] = [`replicas.${at}.`, replicas.slice(0, at)];
    const refused = await refuseReplica(env, scope, replica, now, path);
    if (refused !== null) return refused;
    if (before.some(({ name }) => name === replica.name)) {
      return refuse("invalid_request", `two replicas are called ${replica.name}`, `${path}name`);
    }
    const alias = refuseAlias("invalid_request", mode, replica, before, path);
    if (alias !== null) return alias;
  }
  return null;
}

function tooMany(): Result<never> {
  return refuse(
    "conflict",
    `the project already has ${LIMITS.fleetsPerProject} fleets, the maximum: delete some first`,
    "name",
  );
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `a fleet called ${name} already exists`, "name");
}
