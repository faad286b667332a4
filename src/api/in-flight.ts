/** The rollouts of a run that have not ended: which they are, so that one can be read or cancelled by its id. */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";
import { wholeNumber } from "../contract/primitives.ts";
import { IN_FLIGHT_STATUSES, RolloutInFlightList } from "../contract/run.ts";
import { unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { ROLLOUT } from "./openapi/examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { IdCursor, pageOf } from "./page.ts";

const InFlightQuery = z.strictObject({
  status: z.enum(IN_FLIGHT_STATUSES).optional(),
  after: IdCursor.optional().describe("id of the last rollout of the page before"),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(100),
});

const { id, run_id, group, slot, attempt } = ROLLOUT;
const EXAMPLE = {
  ...{ object: "rollout_in_flight", id, run_id, group, slot, attempt },
  ...{ status: "running", cancelling: false, turns: null, started_at: 1795258329 },
} as const;

export const inFlightOperations: readonly Operation[] = [
  {
    id: "listInFlight",
    method: "get",
    path: "/v1/runs/{id}/rollouts",
    summary: "List a run's rollouts that have not ended, in the order they were dispatched",
    query: InFlightQuery,
    reply: {
      status: 200,
      description: "One page of them; none once the run has ended",
      contentType: "application/json",
      schema: RolloutInFlightList,
      example: { object: "list", data: [EXAMPLE], first_id: id, last_id: id, has_more: false },
    },
    errors: ["invalid_request", "unknown_field", "not_found"],
    handle: listInFlight,
  },
];

async function listInFlight(context: ApiContext): Promise<Response> {
  const { status, after, limit } = parseAs(InFlightQuery, queryOf(context.req.url));
  const page = { status: status ?? null, after: after ?? null, limit: limit + 1 };
  const { services } = context.var.dependencies;
  const run = pathParam(context, "id");
  const read = await services.readInFlight(context.env, context.var.scope, run, page);
  return context.json(pageOf(unwrap(read), limit));
}
