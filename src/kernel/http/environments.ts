/** The environments of this deployment. */
import { EnvironmentList, EnvironmentView } from "../../contract/run.ts";
import { unwrap } from "./errors.ts";
import { type Operation, pathParam } from "./operation.ts";
import { pageOf } from "./page.ts";

export const environmentOperations: readonly Operation[] = [
  {
    id: "listEnvironments",
    route: "GET /v1/environments",
    permission: "environments:read",
    summary: "List all environments, on one page",
    reply: { description: "Every environment a run may name", schema: EnvironmentList },
    handle: async (context) => {
      const data = await context.var.services.listEnvironments(context.env);
      return context.json(pageOf(data, data.length));
    },
  },
  {
    id: "getEnvironment",
    route: "GET /v1/environments/{id}",
    permission: "environments:read",
    summary: "Read one environment, by id or id@version",
    reply: { description: "Its arguments and its task row as JSON Schema, and what it needs", schema: EnvironmentView },
    handle: async (context) => {
      return context.json(unwrap(await context.var.services.readEnvironment(context.env, pathParam(context, "id"))));
    },
  },
];
