/**
 * What a trainer's object sends to the fleet of its run: the weights that all replicas must serve, and, when the run
 * ends, the release of the fleet. Pure.
 *
 * Invariants. An order is repeated until the fleet acknowledges it. Only the newest weights are ordered: older ones
 * that were not acknowledged are skipped. A reset starts a new generation, so an older version in it is a new order.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { WeightOrder } from "../messages/run-fleet.ts";
import type { TrainerSpec } from "../messages/training-wire.ts";
import type { FleetNotified, TrainerState } from "./state.ts";
import { isVoid, type WeightRow } from "./weight-versions.ts";

export type FleetNews =
  | { readonly kind: "update"; readonly generation: number; readonly version: number }
  | { readonly kind: "release" };

/** Null if the fleet has acknowledged everything, or if the run is not on a fleet. */
export function newsForFleet(state: TrainerState, { fleet }: Pick<TrainerSpec, "fleet">): FleetNews | null {
  if (fleet === undefined) return null;
  const { told, released } = state.fleet ?? NOTHING_NOTIFIED;
  if (state.ended) return released ? null : { kind: "release" };
  const { generation, published: version } = state;
  if (told?.generation === generation && told.version === version) return null;
  return { kind: "update", generation, version };
}

const NOTHING_NOTIFIED: FleetNotified = { told: null, released: false };

export function orderTakenByFleet(state: TrainerState, news: FleetNews): TrainerState {
  const before = state.fleet ?? NOTHING_NOTIFIED;
  if (news.kind === "release") return { ...state, fleet: { ...before, released: true } };
  const { generation, version } = news;
  return { ...state, fleet: { ...before, told: { generation, version } } };
}

/** `rows`: the records of the version, in every generation. */
export function orderOf(
  { scope, run_id }: Pick<TrainerSpec, "scope" | "run_id">,
  { id: fleet_id, initial_weights }: RunFleet,
  state: TrainerState,
  rows: readonly WeightRow[],
  { generation, version }: Extract<FleetNews, { kind: "update" }>,
): WeightOrder {
  const row = rows.find((one) => one.version === version && !isVoid(state, one));
  const begins = version === 0 ? (initial_weights ?? null) : null;
  return {
    ...{ scope, fleet_id, run_id, generation, version, epoch: state.epoch },
    location: row?.location ?? begins,
    label: row?.label ?? null,
    ...(initial_weights !== undefined && { loads_start: true as const }),
  };
}
