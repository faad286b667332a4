/** The series of a training run: what it measured of each step, and what its trainer said of it. */
import * as z from "zod";
import { LIMITS } from "../contract/limits.ts";

import { listOf, wholeNumber } from "../contract/primitives.ts";
import { StepMetrics } from "../contract/training-view.ts";
import { unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { STEP_METRICS } from "./openapi/training-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const MetricsQuery = z.strictObject({
  after_step: wholeNumber(0).optional().describe("steps after this one; default: from the first").meta({ example: 40 }),
  limit: wholeNumber(1, LIMITS.stepsPerPage).default(100),
});

export const StepMetricsList = listOf(StepMetrics, "StepMetricsList");

export const metricsOperations: readonly Operation[] = [
  {
    id: "listMetrics",
    method: "get",
    path: "/v1/runs/{id}/metrics",
    summary: "Read a training run's series by step; an eval has none",
    query: MetricsQuery,
    reply: {
      status: 200,
      description: "One page of steps, the first one first; `last_id` is the next `after_step`",
      contentType: "application/json",
      schema: StepMetricsList,
      example: {
        object: "list",
        data: [STEP_METRICS],
        first_id: String(STEP_METRICS.step),
        last_id: String(STEP_METRICS.step),
        has_more: false,
      },
    },
    errors: ["invalid_request", "unknown_field", "not_found"],
    handle: readSteps,
  },
];

async function readSteps(context: ApiContext): Promise<Response> {
  const { after_step, limit } = parseAs(MetricsQuery, queryOf(context.req.url));
  const { services } = context.var.dependencies;
  const page = { after: after_step ?? -1, limit: limit + 1 };
  const id = pathParam(context, "id");
  const read = unwrap(await services.readMetrics(context.env, context.var.scope, id, page));
  const data = read.slice(0, limit);
  const [first, last] = [data[0], data.at(-1)].map((one) => (one ? String(one.step) : null));
  return context.json({
    ...{ object: "list", data, first_id: first, last_id: last, has_more: read.length > limit },
  });
}
