/** Agents: programs outside the platform that play rollouts. */
import type { Slice } from "../kernel/http/slice.ts";
import { addressOperations } from "./address-routes.ts";
import { agentHooks } from "./hooks.ts";
import { leaseOperations } from "./routes.ts";
import { agentsObject } from "./rpc.ts";

export const agents: Slice = {
  operations: [...leaseOperations, ...addressOperations],
  hooks: {
    agents: agentHooks,
    objectsOfProject: async (env, scope, limit) => (limit < 1 ? [] : [() => agentsObject(env, scope).free()]),
  },
};
