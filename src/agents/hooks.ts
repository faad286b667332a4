/** Offers rollouts to the agents of their project. */
import type { AgentHooks } from "../kernel/kit/agent-hooks.ts";
import { agentsObject } from "./rpc.ts";

export const agentHooks: AgentHooks = {
  offer: async (env, { scope, agent, rollout_id, run_id, host, group, slot, attempt, example_id, model, fleet }) => {
    if (agent === undefined) throw new TypeError(`${rollout_id} is not played by an agent`);
    const place = { rollout_id, run_id, host, group, slot, attempt, example_id };
    const { name, lease_s } = agent;
    await agentsObject(env, scope).offer(scope, name, { ...place, model, lease_s, ...(fleet && { fleet }) });
  },
  ended: async (env, { scope, rollout_id }) => {
    await agentsObject(env, scope).ended(rollout_id);
  },
};
