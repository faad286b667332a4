/** Runs: create, list, read, cancel. */
import * as z from "zod";
import { Metadata } from "../contract/eval-request.ts";
import { CreatedRun, RUN_KINDS, RUN_STATUSES, RunList, RunRequest, RunView } from "../contract/run.ts";

import { getRun, listRuns, runViewOf } from "../db/runs.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./creation.ts";
import { unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, queryOf } from "./input.ts";
import { RUN, RUN_REQUEST } from "./openapi/examples.ts";
import { CREATED_TRAINING_RUN } from "./openapi/training-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

export const CreateRun = RunRequest.meta({ id: "RunRequest" });

const RunQuery = z.strictObject({
  kind: z.enum(RUN_KINDS).optional(),
  status: z.enum(RUN_STATUSES).optional(),
  environment: z
    .string()
    .regex(/^[^@%]+(@[\w.+-]+)?$/, { error: "must be an id or id@version" })
    .optional()
    .describe("id, or id@version; version 1 includes 1.0.2")
    .meta({ example: "gsm8k@1" }),
  metadata: Metadata.optional()
    .describe("metadata[key]=value, once per pair that must be there")
    .meta({ example: { branch: "main" } }),
  ...PageQuery.shape,
});

export const runOperations: readonly Operation[] = [
  {
    id: "createRun",
    method: "post",
    path: "/v1/runs",
    summary: "Start a run",
    headers: IDEMPOTENCY_HEADER,
    description:
      "`kind: eval` (the default) plays and scores so many tasks; `kind: training` goes on handing scored batches to a trainer. The reply to the latter holds the trainer's token and push secret, once.",
    body: { schema: CreateRun, example: RUN_REQUEST },
    reply: {
      status: 202,
      description: "Accepted; the run goes on by itself",
      contentType: "application/json",
      schema: CreatedRun,
      example: CREATED_TRAINING_RUN,
      headers: CREATED_HEADERS,
    },
    errors: [
      "invalid_request",
      "unknown_field",
      "invalid_row",
      "unmet_need",
      "missing_judge",
      "not_found",
      "url_not_allowed",
      "idempotency_conflict",
      "too_large",
    ],
    handle: createRun,
  },
  {
    id: "listRuns",
    method: "get",
    path: "/v1/runs",
    summary: "List runs; what they count may lag a few seconds behind",
    query: RunQuery,
    reply: {
      status: 200,
      description: "One page of runs",
      contentType: "application/json",
      schema: RunList,
      example: { object: "list", data: [RUN], first_id: RUN.id, last_id: RUN.id, has_more: false },
    },
    errors: ["invalid_request", "unknown_field"],
    handle: listRunPage,
  },
  {
    id: "getRun",
    method: "get",
    path: "/v1/runs/{id}",
    summary: "Read a run",
    reply: {
      status: 200,
      description: "The run with its counts and its report so far",
      contentType: "application/json",
      schema: RunView,
      example: RUN,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.readRun(context.env, context.var.scope, id)));
    },
  },
  {
    id: "cancelRun",
    method: "post",
    path: "/v1/runs/{id}/cancel",
    summary: "End a run early; asking again changes nothing",
    headers: { "Idempotency-Key": "accepted and not needed: cancelling twice is cancelling once" },
    reply: {
      status: 200,
      description: "The run; calls in flight are aborted and still report their usage",
      contentType: "application/json",
      schema: RunView,
      example: { ...RUN, status: "cancelled", flow: null },
    },
    errors: ["not_found"],
    handle: async (context) => {
      idempotencyKeyOf(context.req.raw);
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.cancelRun(context.env, context.var.scope, id)));
    },
  },
];

async function createRun(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, CreateRun);
  const { services } = context.var.dependencies;
  const accepted = await services.acceptRun(context.env, context.var.scope, request, options);
  const { run, replayed } = unwrap(accepted);
  return creationReply(context, { value: run, replayed }, { folder: "/v1/runs", status: 202 });
}

async function listRunPage(context: ApiContext): Promise<Response> {
  const query = parseAs(RunQuery, queryOf(context.req.url));
  const [database, scope] = [context.env.DB, context.var.scope];
  const [id, version] = query.environment?.split("@") ?? [];
  const records = await listRuns(database, scope, {
    kind: query.kind ?? null,
    status: query.status ?? null,
    environment: id === undefined ? null : { id, version: version ?? null },
    metadata: query.metadata ?? {},
    after: await positionOf(query.after, "a run", async (after) => {
      return (await getRun(database, scope, after))?.run ?? null;
    }),
    limit: query.limit + 1,
    order: query.order,
  });
  return context.json(pageOf(records.map(runViewOf), query.limit));
}
