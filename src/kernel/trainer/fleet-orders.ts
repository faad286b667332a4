/**
 * What a trainer's object has to tell the fleet of its run: which weights all replicas are to serve, and in the end that
 * they are nobody's. Pure.
 *
 * Invariants. An order is repeated until it was heard. The newest weights alone are ordered: what was published before them
 * and not heard of is not made up for. A reset is a generation of its own, so that an older version is another order.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { WeightOrder } from "../messages/run-fleet.ts";
import type { TrainerSpec } from "../messages/training-wire.ts";
import type { FleetTold, TrainerState } from "./state.ts";
import { isVoid, type WeightRow } from "./weight-versions.ts";

export type FleetNews =
  | { readonly kind: "update"; readonly generation: number; readonly version: number }
  | { readonly kind: "release" };

/** Null where the fleet has heard everything, and for a run that is on none. */
export function newsForFleet(state: TrainerState, { fleet }: Pick<TrainerSpec, "fleet">): FleetNews | null {
  if (fleet === undefined) return null;
  const { told, released } = state.fleet ?? NOTHING_TOLD;
  if (state.ended) return released ? null : { kind: "release" };
  const { generation, published: version } = state;
  if (told?.generation === generation && told.version === version) return null;
  return { kind: "update", generation, version };
}

const NOTHING_TOLD: FleetTold = { told: null, released: false };

export function heardByFleet(state: TrainerState, news: FleetNews): TrainerState {
  const before = state.fleet ?? NOTHING_TOLD;
  if (news.kind === "release") return { ...state, fleet: { ...before, released: true } };
  const { generation, version } = news;
  return { ...state, fleet: { ...before, told: { generation, version } } };
}

/** `rows`: what is known of the version, of every generation. */
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
