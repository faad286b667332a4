/** Runs: create, list, read, and change. Repeating a change has no further effect. */
import * as z from "zod";
import { RunAudit } from "../../contract/audit.ts";
import { Metadata } from "../../contract/eval-request.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { CreatedRun, RUN_KINDS, RUN_SORTS, RUN_STATUSES, RunList, RunRequest, RunView } from "../../contract/run.ts";
import { RescoreRequest, RetryRequest, RunPatch } from "../../contract/run-control.ts";
import { RunPreview } from "../../contract/run-preview.ts";
import { databaseOf } from "../db/database.ts";
import { RUNS_SEARCHED } from "../db/run-filter.ts";
import { getRun, listRuns, runViewOf } from "../db/runs.ts";
import {
  answer,
  ask,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  readQuery,
} from "./answer.ts";
import { unwrap } from "./errors.ts";
import type { ApiContext, Operation, SuccessReply } from "./operation.ts";
import { RUN_COST_MS } from "./pace.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

/** Errors of a run that cannot start because money is missing. */
export const UNPAID = ["insufficient_balance", "budget_exhausted"] as const;
export const CREATED_RUN = { folder: "/v1/runs", status: 202 } as const;
const CreateRun = RunRequest.meta({ id: "RunRequest" });
/** Errors of a run that cannot start for another reason. */
export const CREATE_ERRORS = [
  "conflict",
  ...(["invalid_row", "unmet_need", "missing_judge", "not_found", "url_not_allowed"] as const),
  ...(["max_tokens_required", "prices_required"] as const),
] as const;
const NOT_NEEDED = { "Idempotency-Key": "accepted but not needed: the request is idempotent" };

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
    .describe("metadata[key]=value, once per pair that must match")
    .meta({ example: { branch: "main" } }),
  model: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe(`the model's name; looks at the newest ${RUNS_SEARCHED} runs`)
    .meta({ example: "qwen3-4b" }),
  search: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      `a part of the id, name, model, environment or a \`key=value\` of metadata; searches the newest ${RUNS_SEARCHED} runs`,
    )
    .meta({ example: "nightly" }),
  sort: z
    .enum(RUN_SORTS)
    .default("created")
    .describe(
      `time of creation, name, mean reward, or known cost. The last three order the newest ${RUNS_SEARCHED} runs, and runs without a value come last`,
    ),
  ...PageQuery.shape,
  order: PageQuery.shape.order.describe("of the `sort`"),
});

/** CPU of a cancellation, in milliseconds: two entries of the audit log, and two calls of the run. */
const CANCEL_COST_MS = 20;
/** CPU of an audit of a run of 20,000 rollouts, in milliseconds. */
const AUDIT_COST_MS = 40;

export const runOperations: readonly Operation[] = [
  {
    id: "createRun",
    route: "POST /v1/runs",
    costMs: RUN_COST_MS,
    permission: "runs:write",
    summary: "Start a run",
    headers: IDEMPOTENCY_HEADER,
    description:
      "`kind: eval` (the default) plays and scores a number of tasks; `kind: training` hands scored batches to a trainer until it is done. Only the reply to this request holds the trainer's token and push secret.",
    body: { schema: CreateRun },
    reply: {
      status: 202,
      description: "Accepted; the run has started",
      schema: CreatedRun,
      example: {
        ...{ kind: "training", name: null, status: "queued", environment: { id: "calculator" } },
        ...{ rollouts_per_example: 8, min_scored: 0, metadata: {}, training: {} },
        trainer: { token: "rct_4kq0w7m2h9e3x5c1v8b6n0t2" },
      },
      headers: CREATED_HEADERS,
    },
    errors: [...CREATE_ERRORS, "idempotency_conflict", ...UNPAID],
    handle: createRun,
  },
  {
    id: "previewRun",
    route: "POST /v1/runs/preview",
    permission: "runs:write",
    summary: "Estimate the cost of a run without starting it",
    description:
      "The body is that of `POST /v1/runs`, and is checked in the same way. The estimate comes from ended runs of the project, so it is null before the first.",
    headers: NOT_NEEDED,
    body: { schema: CreateRun },
    reply: { description: "The estimate", schema: RunPreview },
    errors: CREATE_ERRORS,
    handle: previewOne,
  },
  {
    id: "listRuns",
    route: "GET /v1/runs",
    permission: "runs:read",
    summary: "List runs; their counts may lag a few seconds behind",
    query: RunQuery,
    reply: { description: "One page of runs", schema: RunList },
    handle: listRunPage,
  },
  {
    id: "getRun",
    route: "GET /v1/runs/{id}",
    permission: "runs:read",
    summary: "Read a run",
    reply: { description: "The run with its counts and its report so far", schema: RunView },
    handle: (context) => answer(context, context.var.services.readRun),
  },
  {
    id: "cancelRun",
    costMs: CANCEL_COST_MS,
    urgent: true,
    route: "POST /v1/runs/{id}/cancel",
    permission: "runs:write",
    summary: "Cancel a run; repeating changes nothing",
    headers: { "Idempotency-Key": "accepted but not needed: cancelling is idempotent" },
    reply: {
      description: "The run; calls in flight are aborted and still report their usage",
      schema: RunView,
      example: { status: "cancelled", status_reason: null },
    },
    handle: (context) => answer(context, context.var.services.cancelRun),
  },
  {
    id: "updateRun",
    route: "PATCH /v1/runs/{id}",
    permission: "runs:write",
    summary: "Change a run while it runs: max_concurrent, name or metadata",
    body: { schema: RunPatch.meta({ id: "RunPatch" }) },
    reply: theRun("The changed run; max_concurrent applies from now on", { max_concurrent: 64 }),
    handle: async (context) => answer(context, context.var.services.changeRun, await readBody(context, RunPatch)),
  },
  {
    id: "pauseRun",
    route: "POST /v1/runs/{id}/pause",
    permission: "runs:write",
    summary: "Pause a run: dispatch nothing until it is resumed",
    description: "Rollouts in flight finish. An ended run stays as it is.",
    headers: NOT_NEEDED,
    reply: theRun("The run", { status: "paused", status_reason: { state: "paused", reason: "user" } }),
    handle: (context) => answer(context, context.var.services.pauseRun),
  },
  {
    id: "resumeRun",
    route: "POST /v1/runs/{id}/resume",
    permission: "runs:write",
    summary: "Resume a paused run",
    headers: NOT_NEEDED,
    reply: theRun("The run"),
    handle: (context) => answer(context, context.var.services.resumeRun),
  },
  {
    id: "retryRun",
    route: "POST /v1/runs/{id}/retry",
    costMs: RUN_COST_MS,
    permission: "runs:write",
    summary: "Retry the rollouts that failed or have no score",
    description:
      "Each gets a new attempt in its slot, as a new rollout; the earlier attempt keeps its outcome but no longer counts in the report. An ended run continues, with the rollouts that it had not dispatched; a cancelled run cannot.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: RetryRequest.meta({ id: "RetryRequest" }) },
    reply: theRun("The run; planned now includes the new attempts"),
    errors: ["conflict", "in_progress", "idempotency_conflict"],
    handle: async (context) => {
      const { request, options } = await readCreation(context, RetryRequest);
      return answer(context, context.var.services.retryRun, request, options);
    },
  },
  {
    id: "releaseLostCalls",
    route: "POST /v1/runs/{id}/release-lost-calls",
    permission: "billing:write",
    whole: true,
    summary: "Release what a run's cap reserves for lost calls: an owner confirms that they cost nothing",
    description:
      "Needs a key of the whole organisation. Reservations for rollouts and judges that have ended no longer count against `max_cost_micros`; those for work in flight stay. The audit log records who released how much. A run that ended at its cap can be retried afterwards. If the cost of such a call becomes known later, it counts as spent, even beyond the cap, and nothing more is started.",
    headers: NOT_NEEDED,
    reply: theRun("The run; unchanged if nothing was reserved"),
    handle: releaseOne,
  },
  {
    id: "rescoreRun",
    route: "POST /v1/runs/{id}/rescore",
    costMs: RUN_COST_MS,
    permission: "runs:write",
    summary: "Score the rollouts of an ended run with another rubric, in a new run",
    description:
      "The new run copies the stored trajectories, one per slot: the policy is not called, judges are. Rollouts that failed there fail here in the same way.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: RescoreRequest.meta({ id: "RescoreRequest" }) },
    reply: {
      status: 202,
      description: "The new run, already started",
      schema: RunView,
      example: { status: "queued", name: "stricter", rescored_from: EXAMPLE.run },
      headers: CREATED_HEADERS,
    },
    errors: ["conflict", "unmet_need", "url_not_allowed", "missing_judge", "idempotency_conflict", ...UNPAID],
    handle: rescoreOne,
  },
  {
    id: "auditRun",
    route: "GET /v1/runs/{id}/audit",
    costMs: AUDIT_COST_MS,
    permission: "runs:read",
    summary: "Check the four records of a run against each other",
    description: "The run's counters, a recount of its rows, its row in the database, and the stored trajectories.",
    reply: { description: "What each says, and the differences; `holds` is true if there are none", schema: RunAudit },
    handle: (context) => answer(context, context.var.services.auditRun, context.var.now()),
  },
];

/** The run as it is now. */
function theRun(description: string, example: Partial<RunView> = {}): SuccessReply {
  return { description, schema: RunView, example };
}

async function createRun(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, CreateRun);
  const accepted = await context.var.services.acceptRun(context.env, context.var.scope, request, options);
  const { run, replayed } = unwrap(accepted);
  return creationReply(context, CREATED_RUN, run, replayed);
}

async function previewOne(context: ApiContext): Promise<Response> {
  const request = await readBody(context, CreateRun);
  const { services, scope, now } = context.var;
  return context.json(unwrap(await services.previewRun(context.env, scope, request, now())));
}

async function listRunPage(context: ApiContext): Promise<Response> {
  const query = readQuery(context, RunQuery);
  const [database, scope] = [databaseOf(context.env), context.var.scope];
  const [id, version] = query.environment?.split("@") ?? [];
  const records = await listRuns(database, scope, {
    kind: query.kind ?? null,
    status: query.status ?? null,
    environment: id === undefined ? null : { id, version: version ?? null },
    model: query.model ?? null,
    search: query.search ?? null,
    metadata: query.metadata ?? {},
    sort: query.sort,
    after: await positionOf(query.after, "a run", async (after) => {
      return (await getRun(database, scope, after))?.run ?? null;
    }),
    limit: query.limit + 1,
    order: query.order,
  });
  return context.json(pageOf(records.map(runViewOf), query.limit));
}

async function releaseOne(context: ApiContext): Promise<Response> {
  const { auditEntry: entry } = context.var;
  if (entry === null) throw new Error("a release has an entry in the audit log");
  return await answer(context, context.var.services.releaseLostCalls, entry);
}

async function rescoreOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, RescoreRequest);
  const { run, replayed } = await ask(context, context.var.services.rescoreRun, request, options);
  return creationReply(context, CREATED_RUN, run, replayed);
}
