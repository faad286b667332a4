/** Environments this deployment bundles. */
import { EnvironmentList, EnvironmentView } from "../contract/run.ts";
import { unwrap } from "./errors.ts";
import { ENVIRONMENT } from "./openapi/examples.ts";
import { type Operation, pathParam } from "./operation.ts";
import { pageOf } from "./page.ts";

export const environmentOperations: readonly Operation[] = [
  {
    id: "listEnvironments",
    method: "get",
    path: "/v1/environments",
    summary: "List the environments, all of them on one page",
    reply: {
      status: 200,
      description: "Every environment a run may name",
      contentType: "application/json",
      schema: EnvironmentList,
      example: {
        object: "list",
        data: [ENVIRONMENT],
        first_id: "gsm8k",
        last_id: "gsm8k",
        has_more: false,
      },
    },
    errors: [],
    handle: async (context) => {
      const data = await context.var.dependencies.services.listEnvironments(context.env);
      return context.json(pageOf(data, data.length));
    },
  },
  {
    id: "getEnvironment",
    method: "get",
    path: "/v1/environments/{id}",
    summary: "Read one environment, by id or id@version",
    reply: {
      status: 200,
      description: "Its arguments and its task row as JSON Schema, and what it needs",
      contentType: "application/json",
      schema: EnvironmentView,
      example: ENVIRONMENT,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services } = context.var.dependencies;
      return context.json(unwrap(await services.readEnvironment(context.env, pathParam(context, "id"))));
    },
  },
];
