/** Two runs compared, task by task. */
import { CompareQuery, RunComparison } from "../contract/comparison.ts";
import { unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { COMPARISON } from "./openapi/comparison-example.ts";
import { type Operation, pathParam } from "./operation.ts";

export const comparisonOperations: readonly Operation[] = [
  {
    id: "compareRuns",
    method: "get",
    path: "/v1/runs/{id}/compare",
    summary: "Compare a run with a baseline, task by task",
    description:
      "Tasks are matched by the content of their rows, whatever their order; each counts once, by the mean of its scored rollouts. Runs that still go on are compared by what they have scored. `conflict`: no task is scored in both.",
    query: CompareQuery,
    reply: {
      status: 200,
      description: "The paired difference, and one page of the tasks that flipped",
      contentType: "application/json",
      schema: RunComparison,
      example: COMPARISON,
    },
    errors: ["invalid_request", "unknown_field", "not_found", "conflict"],
    handle: async (context) => {
      const query = parseAs(CompareQuery, queryOf(context.req.url));
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.compareRuns(context.env, context.var.scope, id, query)));
    },
  },
];
