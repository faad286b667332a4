/** The environments that a project may use: those of the deployment, and published ones. */
import * as z from "zod";
import { EnvironmentResults } from "../../contract/environment-results.ts";
import { LIMITS } from "../../contract/limits.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import { PublishedOwner } from "../../contract/published-environment.ts";
import { EnvironmentList, EnvironmentView } from "../../contract/run.ts";
import { answer, readQuery } from "./answer.ts";
import type { Operation } from "./operation.ts";
import { pageOf } from "./page.ts";

const ListQuery = z.strictObject({
  search: z
    .string()
    .regex(/^[\p{L}\p{N} ._/-]{1,100}$/u, {
      error: "must be 1 to 100 letters, digits, spaces, dots, dashes and slashes",
    })
    .optional()
    .describe("text in the name or the description")
    .meta({ example: "guess" }),
  owner: PublishedOwner.optional().describe("only environments that it has published"),
  after: z
    .string()
    .regex(/^[A-Za-z0-9@][\w./@-]{0,213}$/, { error: "must be the id of an environment" })
    .optional()
    .describe("id of the last environment of the previous page")
    .meta({ example: "gsm8k" }),
  limit: wholeNumber(1, 100).default(100).describe("a page has at most 20 published ones"),
});

/** CPU of the results of 200 runs, in milliseconds. */
const RESULTS_COST_MS = 20;

export const environmentOperations: readonly Operation[] = [
  {
    id: "listEnvironments",
    route: "GET /v1/environments",
    permission: "environments:read",
    summary: "List the environments that a run may name",
    description: "First those of the deployment, then published ones by name, each with its newest version.",
    query: ListQuery,
    reply: { description: "One page of environments", schema: EnvironmentList },
    handle: async (context) => {
      const query = readQuery(context, ListQuery);
      const { services, scope } = context.var;
      const { rows, limit } = await services.listEnvironments(context.env, scope, query);
      return context.json(pageOf(rows, limit));
    },
  },
  {
    id: "getEnvironment",
    route: "GET /v1/environments/{id}",
    permission: "environments:read",
    summary: "Read one environment, by id or id@version",
    description:
      "For a published one, `id` is `owner/name`, with the slash as %2F; a version, a range or a tag may follow.",
    reply: { description: "Its arguments and its task row as JSON Schema, and what it needs", schema: EnvironmentView },
    handle: (context) => answer(context, context.var.services.readEnvironment),
  },
  {
    id: "getEnvironmentResults",
    route: "GET /v1/environments/{id}/results",
    permission: "runs:read",
    summary: "Read the results of the project's runs of an environment, for each model",
    description: `\`id\` is the environment without a version; for a published one \`owner/name\`, with the slash as %2F. Every run of the project counts, of the newest ${LIMITS.resultRuns} of all versions; runs of other projects are not included.`,
    costMs: RESULTS_COST_MS,
    reply: { description: "The results", schema: EnvironmentResults },
    handle: (context) => answer(context, context.var.services.readEnvironmentResults),
  },
];
