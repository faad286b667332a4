/** What a rollout needs from the agents that play it. The slice that has agents registers these hooks (slice-hooks.ts). */
import type { RolloutSpec } from "../messages/wire.ts";

export interface AgentHooks {
  /** The rollout waits for a worker. May be called again for the same rollout. */
  offer(env: Env, spec: RolloutSpec): Promise<void>;
  /** The rollout has ended. */
  ended(env: Env, spec: RolloutSpec): Promise<void>;
}

export const NO_AGENTS: AgentHooks = {
  offer: async () => undefined,
  ended: async () => undefined,
};
