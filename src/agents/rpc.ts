/** The interface of the object that has a project's queue of rollouts for agents. Fields are only added. */
import type { RunFleet } from "../contract/run-spec.ts";
import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { TakenRollout } from "../kernel/messages/agent-wire.ts";
import type { AgentHeartbeat, AgentLeaseRequest, LeaseStates } from "./wire.ts";

/** A rollout that waits for a worker. */
export interface OfferedRollout {
  readonly rollout_id: string;
  readonly run_id: string;
  /** The number of its shard. */
  readonly host: number;
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
  readonly example_id: number;
  readonly model: string;
  readonly lease_s: number;
  readonly fleet?: RunFleet;
}

export type LeasedOffer = OfferedRollout & TakenRollout & { readonly expires_at: number };

export interface AgentsRpc {
  /** The rollout waits for a worker of the agent `name`. A repeat changes nothing. */
  offer(scope: Scope, name: string, rollout: OfferedRollout): Promise<void>;
  /** Waits for the first one. Empty if there is none. `again`: also those that a worker has, which loses them. */
  lease(scope: Scope, name: string, request: AgentLeaseRequest, again?: boolean): Promise<LeasedOffer[]>;
  heartbeat(request: AgentHeartbeat): Promise<LeaseStates["data"]>;
  /** Gives leases back: other workers may take the rollouts at once. Waiting requests of the worker end with none. */
  release(scope: Scope, request: AgentHeartbeat): Promise<LeaseStates["data"]>;
  ended(rollout_id: string): Promise<void>;
  /** Deletes everything. */
  free(): Promise<boolean>;
}

export function agentsObject(env: Env, scope: Scope): AgentsRpc {
  const stub: unknown = env.AGENTS.getByName(`${folderOf(scope)}agents`);
  return stub as AgentsRpc;
}
