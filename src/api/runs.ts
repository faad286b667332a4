/** Runs: create, list, read, cancel. */
import * as z from "zod";
import { canonicalJson } from "../core/json.ts";
import { Metadata, RUN_STATUSES, RunRequest, RunView } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { runViewOf } from "../db/run-view.ts";
import { getRun, listRuns, type RunPosition } from "../db/runs.ts";
import { sha256Hex } from "../runtime/secrets.ts";
import { Refusal, unwrap } from "./errors.ts";
import { RUN, RUN_REQUEST } from "./examples.ts";
import { idempotencyKeyOf, parseAs, queryOf, readJson } from "./input.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

export const CreateRun = RunRequest.meta({ id: "RunRequest" });

export const RunList = z
  .object({
    object: z.literal("list"),
    data: z.array(RunView),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: "RunList" });

const RunQuery = z.strictObject({
  kind: RunRequest.shape.kind.unwrap().optional(),
  status: z.enum(RUN_STATUSES).optional(),
  environment: z
    .string()
    .regex(/^[^@%]+(@[\w.+-]+)?$/, { error: "must be an id or id@version" })
    .optional()
    .describe("id, or id@version; version 1 includes 1.0.2"),
  metadata: Metadata.optional().describe("metadata[key]=value, once per pair that must be there"),
  after: z.string().optional().describe("id of the last run of the page before"),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("desc").describe("by time of creation"),
});

export const runOperations: readonly Operation[] = [
  {
    id: "createRun",
    method: "post",
    path: "/v1/runs",
    summary: "Start a run",
    headers: {
      "Idempotency-Key": "the same key and body again gives the same run, and starts nothing",
    },
    body: { schema: CreateRun, example: RUN_REQUEST },
    reply: {
      status: 202,
      description: "Accepted; the run goes on by itself",
      contentType: "application/json",
      schema: RunView,
      example: { ...RUN, status: "queued" },
      headers: {
        location: "where the run is read",
        "idempotent-replayed": "true when the key named a run that was already there",
      },
    },
    errors: [
      "invalid_request",
      "unknown_field",
      "invalid_row",
      "unmet_need",
      "missing_judge",
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
  const { services, now } = context.var.dependencies;
  const idempotencyKey = idempotencyKeyOf(context.req.raw);
  const body = await readJson(context.req.raw);
  const request = parseAs(CreateRun, body);
  // The hash is of what was sent, not of what the defaults made of it: a new default must not turn a repeat away.
  const requestHash = sha256Hex(canonicalJson(body));
  const options = { idempotencyKey, requestHash, now: now() };
  const accepted = await services.acceptRun(context.env, context.var.scope, request, options);
  const { run, replayed } = unwrap(accepted);
  context.header("location", `/v1/runs/${run.id}`);
  if (replayed) context.header("idempotent-replayed", "true");
  return context.json(run, 202);
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
    after: query.after === undefined ? null : await positionOf(database, scope, query.after),
    limit: query.limit + 1,
    order: query.order,
  });
  const data = records.slice(0, query.limit).map(runViewOf);
  return context.json({
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: records.length > query.limit,
  });
}

async function positionOf(database: D1Database, scope: Scope, id: string): Promise<RunPosition> {
  const record = await getRun(database, scope, id);
  if (record !== null) return record.run;
  throw new Refusal({
    code: "invalid_request",
    message: "after: is not the id of a run",
    param: "after",
  });
}
