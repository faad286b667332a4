/** One rollout, read whole. */
import { RolloutView } from "../core/run.ts";
import { unwrap } from "./errors.ts";
import { ROLLOUT } from "./examples.ts";
import { type Operation, pathParam } from "./operation.ts";

export const rolloutOperations: readonly Operation[] = [
  {
    id: "getRollout",
    method: "get",
    path: "/v1/rollouts/{id}",
    summary: "Read a rollout: messages, turns, usage, errors and scores",
    reply: {
      status: 200,
      description: "The rollout; before it is done, what is stored of it so far",
      contentType: "application/json",
      schema: RolloutView,
      example: ROLLOUT,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.readRollout(context.env, context.var.scope, id)));
    },
  },
];
