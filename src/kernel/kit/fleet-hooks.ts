/** What a run needs from its fleet. The slice that has fleets registers these hooks (slice-hooks.ts). */
import type { EvalRequest } from "../../contract/eval-request.ts";
import type { LocationHint } from "../../contract/fleet.ts";
import type { TokenPrices } from "../../contract/judgement.ts";
import type { Scope } from "../../contract/scope.ts";
import type { TrainingSpec } from "../../contract/training-request.ts";
import type { Turn, TurnEnd } from "../../contract/trajectory.ts";
import type { Reach } from "../messages/endpoint-wire.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { RunFleetRpc } from "../messages/run-fleet.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import type { Subrequests } from "./subrequests.ts";

/** The fields of a training run that decide whether it may start on a fleet. */
export interface FleetTraining extends Pick<EvalRequest, "model" | "sampling"> {
  readonly initial_weights: TrainingSpec["initial_weights"] | undefined;
}

/** A fleet that a run can use. */
export interface FleetPlace {
  readonly kind: "fleet";
  readonly id: string;
  readonly name: string;
  /** Where the Durable Objects of its runs are placed. */
  readonly location_hint: LocationHint | null;
  readonly prices: TokenPrices | null;
  /** Whether several training runs may use it at once: their weights have different names. */
  readonly shares_weights: boolean;
  /** Why a training run may not start on it; null if it may. */
  readonly refuseTraining: (training: FleetTraining, now: number) => Promise<Result<never> | null>;
}

export interface FleetLimits {
  readonly max_concurrent: number;
  /** Why none of its replicas accepts calls; null if at least one does. */
  readonly down: string | null;
}

export interface FleetHooks {
  /** The fleet with this name or id, if it has a replica that could be called; otherwise the reason. */
  find(env: Env, scope: Scope, nameOrId: string): Promise<Result<FleetPlace>>;
  /** How calls of the rollout reach a replica. `calls`: the `Subrequests` of the object that plays the rollout. */
  reach(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): Reach;
  /**
   * For a rollout that is over, before its run is notified: gives its place back, and returns the ends of its calls that
   * are not noted in its turns yet.
   */
  ends(
    env: Env,
    spec: RolloutSpec,
    turns: readonly Turn[],
    calls: Subrequests,
    now: () => number,
  ): Promise<readonly TurnEnd[]>;
  /** The sum of what its available replicas accept at once. `waits`: the run has rollouts to dispatch. */
  limits(env: Env, scope: Scope, fleetId: string, waits: boolean): Promise<FleetLimits>;
  object(env: Env, scope: Scope, fleetId: string): RunFleetRpc;
}

const NONE = "this platform has no fleets";

function fail(): never {
  throw new Error(NONE);
}

/** For a platform without the fleets slice: no run can use a fleet. */
export const NO_FLEETS: FleetHooks = {
  find: async () => refuse("invalid_request", `fleet: ${NONE}: name an endpoint`, "fleet"),
  reach: fail,
  ends: fail,
  limits: fail,
  object: fail,
};
