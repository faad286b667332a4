/** The fleet that a run names: where its calls go, and why a training run may not start on it. */

import type { Scope } from "../contract/scope.ts";
import { whyUntrainable } from "../core/training/engine-exactness.ts";
import { isSilent, probeEndpoint } from "../kernel/clients/probe.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { trainingOn } from "../kernel/db/runs.ts";
import { EndpointUnusable } from "../kernel/endpoint/call.ts";
import type { FleetPlace, FleetTraining } from "../kernel/kit/fleet-hooks.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { refuseTaken } from "../kernel/service/resolve/endpoint.ts";
import { openReplica } from "./access.ts";
import { findFleet, replicasOf } from "./queries.ts";
import { whyRemoved } from "./stored-update.ts";
import type { FleetRow, ReplicaRow } from "./tables.ts";
import { standingOf } from "./views.ts";

interface CalledFleet {
  readonly fleet: FleetRow;
  readonly replicas: readonly ReplicaRow[];
}

export async function findPlace(env: Env, scope: Scope, nameOrId: string): Promise<Result<FleetPlace>> {
  const fleet = await findFleet(databaseOf(env), scope, nameOrId);
  if (fleet === null) return refuse("not_found", `no fleet ${nameOrId}`, "fleet");
  const removed = whyRemoved(fleet.update);
  if (removed !== null) return refuse("conflict", removed, "fleet");
  const replicas = await replicasOf(databaseOf(env), scope, fleet.id);
  if (replicas.length === 0) {
    const message = `${fleet.name} has no usable replica: add one with POST /v1/fleets/${fleet.id}/replicas`;
    return refuse("conflict", message, "fleet");
  }
  const { id, name, location_hint, prices } = fleet;
  const value: FleetPlace = {
    ...{ kind: "fleet", id, name, location_hint, prices, shares_weights: sharesWeights(fleet.update) },
    refuseTraining: (training, now) => refuseTraining(env, scope, { fleet, replicas }, training, now),
  };
  return { ok: true, value };
}

/** Whether several training runs may use a fleet at the same time: only if their weights have different names. */
export function sharesWeights({ mode }: FleetRow["update"]): boolean {
  return mode === "lora_versioned";
}

async function refuseTraining(
  env: Env,
  scope: Scope,
  called: CalledFleet,
  training: FleetTraining,
  now: number,
): Promise<Result<never> | null> {
  // The initial weights replace whatever the replicas have.
  const held = training.initial_weights ? refuseInitialWeights(called.fleet) : await refuseHeld(env, scope, called);
  return held ?? (await refuseReplicas(env, scope, training, called.replicas, now));
}

/**
 * Refuses if replicas have the weights of a run that is over: only a restart of their servers restores the weights that
 * a run starts with. Each such replica is probed first, since it may have been restarted.
 */
export async function refuseHeld(
  env: Env,
  scope: Scope,
  { fleet, replicas }: CalledFleet,
): Promise<Result<never> | null> {
  const standing = await standingOf(env, scope, fleet.id, true);
  const held = standing?.replicas.find(({ unfit = null }) => unfit !== null);
  if (held === undefined) return null;
  const [other] = await trainingOn(databaseOf(env), scope, fleet.id).limit(1);
  if (other !== undefined) return await refuseTaken(env, scope, fleet.id);
  const name = replicas.find(({ id }) => id === held.replica_id)?.name ?? held.replica_id;
  return refuse("conflict", `replica ${name}: ${held.unfit}`, "fleet");
}

/** With adapters, version 0 is the base model that the engine was started with. */
function refuseInitialWeights({ update: { mode } }: Pick<FleetRow, "update">): Result<never> | null {
  if (mode !== "lora_versioned") return null;
  const message = `initial_weights: the fleet's update.mode ${mode} cannot load version 0: leave it out`;
  return refuse("invalid_request", message, "initial_weights");
}

/** Probes each engine of the fleet. An engine that does not answer now may come back, but at least one must answer. */
async function refuseReplicas(
  env: Env,
  scope: Scope,
  { model, sampling }: Pick<FleetTraining, "model" | "sampling">,
  replicas: readonly ReplicaRow[],
  now: number,
): Promise<Result<never> | null> {
  const whys = await new Subrequests().fetchAll(replicas, async ({ id, fleet_id, name }) => {
    try {
      const access = await openReplica(env, scope, fleet_id, id, now);
      const seen = await probeEndpoint({ ...access, model, usual: null, sampling, now });
      const why = isSilent(seen) ? (seen.error ?? "it does not answer") : whyUntrainable(seen);
      return why === null ? null : { silent: isSilent(seen), message: `fleet: ${name}: ${why}` };
    } catch (thrown) {
      if (!(thrown instanceof EndpointUnusable)) throw thrown;
      return { silent: true, message: `fleet: ${name}: ${thrown.message}` };
    }
  });
  const known = whys.filter((why) => why !== null);
  const worst = known.find(({ silent }) => !silent) ?? (known.length === replicas.length ? known[0] : undefined);
  return worst === undefined ? null : refuse("invalid_request", worst.message, "fleet");
}
