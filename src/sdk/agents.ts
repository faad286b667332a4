/** Agents: workers that lease rollouts and play them with programs of their own. */
import type { AgentHeartbeat, AgentLeaseRequestInput, LeasedRollout, LeaseStates } from "../agents/wire.ts";
import type { PostOptions } from "./options.ts";
import { pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Agents extends Resource {
  /** Waits for the first rollout of the agent; an empty list if there is none. */
  async lease(name: string, request: AgentLeaseRequestInput, options: PostOptions = {}): Promise<LeasedRollout[]> {
    const path = pathTo`/agents/${name}/lease`;
    const { rollouts } = await this.requests.post<{ rollouts: LeasedRollout[] }>(path, request, options);
    return rollouts;
  }

  /** Extends leases. Stop working on a rollout whose lease is `lost` or `ended`. */
  async heartbeat(name: string, held: AgentHeartbeat, options: PostOptions = {}): Promise<LeaseStates["data"]> {
    const path = pathTo`/agents/${name}/heartbeat`;
    return (await this.requests.post<LeaseStates>(path, held, options)).data;
  }

  /** Gives leases back: other workers may take the rollouts at once. Waiting requests of the worker end with none. */
  async release(name: string, held: AgentHeartbeat, options: PostOptions = {}): Promise<LeaseStates["data"]> {
    const path = pathTo`/agents/${name}/release`;
    return (await this.requests.post<LeaseStates>(path, held, options)).data;
  }
}
