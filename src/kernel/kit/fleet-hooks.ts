/** What runs ask of the fleet they are on. The slice that has fleets registers it (slice-hooks.ts). */
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { LocationHint } from "../../contract/fleet.ts";
import type { TokenPrices } from "../../contract/judgement.ts";
import type { Scope } from "../../contract/scope.ts";
import type { TrainingSpec } from "../../contract/training-request.ts";
import type { Reach } from "../messages/endpoint-wire.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { RunFleetRpc } from "../messages/run-fleet.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import type { Subrequests } from "./subrequests.ts";

/** What of a training run counts for whether it may begin on a fleet. */
export interface FleetTraining extends Pick<EvalRequest, "model" | "sampling"> {
  readonly initial_weights: TrainingSpec["initial_weights"] | undefined;
}

/** A fleet that a run may be on. */
export interface FleetPlace {
  readonly kind: "fleet";
  readonly id: string;
  readonly name: string;
  /** Where the objects of its runs are to live. */
  readonly location_hint: LocationHint | null;
  readonly prices: TokenPrices | null;
  /** Whether several training runs may have it at once: their weights go by different names. */
  readonly shares_weights: boolean;
  /** Why a training run may not begin on it; null: it may. */
  readonly refuseTraining: (training: FleetTraining, now: number) => Promise<Result<never> | null>;
}

export interface FleetLimits {
  readonly max_concurrent: number;
  /** Why none of its replicas takes calls; null: one does. */
  readonly down: string | null;
}

export interface FleetHooks {
  /** The fleet of that name or id, with a replica that could be called; why there is none, else. */
  find(env: Env, scope: Scope, nameOrId: string): Promise<Result<FleetPlace>>;
  /** How calls of the rollout get to a replica. `calls`: those of the object that plays it. */
  reach(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): Reach;
  /** As many calls at once as those of its replicas that take any. `waits`: a run has rollouts to dispatch. */
  limits(env: Env, scope: Scope, fleetId: string, waits: boolean): Promise<FleetLimits>;
  object(env: Env, scope: Scope, fleetId: string): RunFleetRpc;
}

const NONE = "this platform has no fleets";

function fail(): never {
  throw new Error(NONE);
}

/** Of a platform without the slice: no run gets onto a fleet. */
export const NO_FLEETS: FleetHooks = {
  find: async () => refuse("invalid_request", `fleet: ${NONE}: name an endpoint`, "fleet"),
  reach: fail,
  limits: fail,
  object: fail,
};
