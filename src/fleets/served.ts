/** Which of a run's weights a replica uses for the run's calls, and the status of a fleet. Pure. */
import type { FleetUpdate } from "../contract/fleet.ts";
import type { WeightOrder } from "../kernel/messages/run-fleet.ts";
import type { FleetCall, FleetStanding, ReplicaStanding } from "./rpc.ts";
import { adapterName, type FleetState, quotaOf, REASON_CHARS, type Replica, reasonOf, unfitness } from "./state.ts";

/**
 * The model name for a call at a replica, and the version that samples it. `version` is null if the run has no version.
 */
export interface Served {
  readonly model: string;
  readonly version: number | null;
  /** The generation of the version. */
  readonly generation?: number;
}

export type AskedCall = Pick<FleetCall, "run_id" | "model" | "trains" | "weights_of" | "loads_start">;

export function servedTo(
  state: FleetState,
  replica: Replica,
  { model, trains, weights_of, loads_start, run_id: asking }: AskedCall,
): Served | null {
  const run_id = weights_of ?? asking;
  const order = orderOf(state, run_id);
  if (order === null && !trains && weights_of === undefined) return { model, version: null };
  const version = versionFor(state, replica, run_id, order);
  // The run's trainer may not have reached the fleet yet.
  if (version === null || (loads_start === true && replica.holds === "start")) return null;
  const generation = order?.generation ?? 0;
  return { model: modelOf(state.update, { run_id, model }, generation, version), version, generation };
}

export function orderOf({ orders }: FleetState, run_id: string): WeightOrder | null {
  return orders.find((order) => order.run_id === run_id) ?? null;
}

function modelOf(
  update: FleetUpdate,
  { run_id, model }: Pick<FleetCall, "run_id" | "model">,
  generation: number,
  version: number,
): string {
  if (version === 0 || update.mode !== "lora_versioned") return model;
  return adapterName(update, { run_id, generation, version });
}

function versionFor(
  { update: { mode } }: FleetState,
  { holds, adapters }: Replica,
  run_id: string,
  order: WeightOrder | null,
): number | null {
  if (mode === "lora_versioned") {
    // The initial weights stay available under the engine's own model name.
    if (order === null || order.version === 0) return 0;
    const own = adapters.filter((one) => one.run_id === run_id);
    const latest = own.filter(({ generation }) => generation === order.generation).at(-1);
    return own.length === 0 ? 0 : (latest?.version ?? null);
  }
  if (holds === null) return null;
  if (holds === "start") return order?.loads_start === true ? null : 0;
  const current = order === null || order.generation === holds.generation;
  return holds.run_id === run_id && current ? holds.version : null;
}

export function standingOf(state: FleetState, inFlight: (replica: string) => number): FleetStanding {
  const order = state.orders.at(-1);
  const weights =
    order === undefined ? null : { run_id: order.run_id, version: order.version, generation: order.generation };
  const replicas = Object.values(state.replicas).map((replica): ReplicaStanding => {
    const { id, since, shown } = replica;
    const reason = reasonOf(state, replica)?.slice(0, REASON_CHARS) ?? null;
    const version = order === undefined ? null : servedVersion(state, replica, order.run_id);
    const unfit = unfitness(state, replica)?.slice(0, REASON_CHARS) ?? null;
    return { replica_id: id, state: shown, reason, unfit, in_flight: inFlight(id), version, since };
  });
  return { replicas, max_concurrent: quotaOf(state), weights };
}

/** The version that a run's calls get on a replica; null if it is unknown, or not one of the run. */
export function servedVersion(state: FleetState, replica: Replica, run_id: string): number | null {
  return versionFor(state, replica, run_id, orderOf(state, run_id));
}
