/** The results of a run, a page of lines at a time; while it runs, what is done so far. */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { wholeNumber } from "../contract/primitives.ts";
import { OUTCOMES, ResultRow } from "../contract/run.ts";
import { unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { linesReply } from "./lines.ts";
import { RESULT_ROW } from "./openapi/examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const ResultQuery = z.strictObject({
  outcome: z.enum(OUTCOMES).optional(),
  after: wholeNumber(0).default(0).describe("as the link to this page has it"),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(100),
});

export const resultOperations: readonly Operation[] = [
  {
    id: "listResults",
    method: "get",
    path: "/v1/runs/{id}/results",
    summary: "Read a run's finished rollouts, one JSON object a line",
    query: ResultQuery,
    reply: {
      status: 200,
      description: "One page of rows; follow the link until there is none",
      contentType: "application/jsonl",
      schema: ResultRow,
      example: RESULT_ROW,
      headers: { link: 'the next page, rel="next"; absent on the last' },
    },
    errors: ["invalid_request", "unknown_field", "not_found", "in_progress", "rate_limited"],
    handle: readPage,
  },
];

async function readPage(context: ApiContext): Promise<Response> {
  const { after, limit, outcome } = parseAs(ResultQuery, queryOf(context.req.url));
  const { services } = context.var.dependencies;
  const page = { after, limit, outcome: outcome ?? null };
  const id = pathParam(context, "id");
  return await linesReply(context, async () =>
    unwrap(await services.readResults(context.env, context.var.scope, id, page)),
  );
}
