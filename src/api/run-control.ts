/** Runs that are there: pause, resume, change, retry, audit. Asked twice, each does what it did once. */
import { RunAudit } from "../contract/audit.ts";
import { RunView } from "../contract/run.ts";
import { RescoreRequest, RetryRequest, RunPatch } from "../contract/run-control.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./creation.ts";
import { unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, readJson } from "./input.ts";
import { AUDIT, RUN } from "./openapi/examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import type { Result } from "./services.ts";

const NOT_NEEDED = { "Idempotency-Key": "accepted and not needed: asking twice is asking once" };

/** The run as it is now. */
function theRun(description: string, changes: Partial<RunView>): Operation["reply"] {
  return {
    status: 200,
    description,
    contentType: "application/json",
    schema: RunView,
    example: { ...RUN, ...changes },
  };
}

export const controlOperations: readonly Operation[] = [
  {
    id: "updateRun",
    method: "patch",
    path: "/v1/runs/{id}",
    summary: "Change a run while it goes on: how many rollouts at once, its name, its metadata",
    body: {
      schema: RunPatch.meta({ id: "RunPatch" }),
      example: { max_concurrent: 64, metadata: { branch: "main" } },
    },
    reply: theRun("The run with what was changed; max_concurrent counts from now on", {
      max_concurrent: 64,
    }),
    errors: ["invalid_request", "unknown_field", "not_found", "too_large"],
    handle: async (context) => {
      const patch = parseAs(RunPatch, await readJson(context.req.raw));
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.changeRun(context.env, context.var.scope, id, patch)));
    },
  },
  {
    id: "pauseRun",
    method: "post",
    path: "/v1/runs/{id}/pause",
    summary: "Dispatch nothing more until the run is resumed",
    description: "What runs finishes. An ended run stays as it is.",
    headers: NOT_NEEDED,
    reply: theRun("The run", { status: "paused", flow: { state: "paused", reason: "user" } }),
    errors: ["not_found"],
    handle: (context) => answer(context, context.var.dependencies.services.pauseRun),
  },
  {
    id: "resumeRun",
    method: "post",
    path: "/v1/runs/{id}/resume",
    summary: "Go on with a paused run",
    headers: NOT_NEEDED,
    reply: theRun("The run", {}),
    errors: ["not_found"],
    handle: (context) => answer(context, context.var.dependencies.services.resumeRun),
  },
  {
    id: "retryRun",
    method: "post",
    path: "/v1/runs/{id}/retry",
    summary: "Try again what failed or has no score",
    description:
      "Each gets another attempt in its slot, a rollout of its own; the one before keeps how it ended and counts no more in the report. An ended run goes on, with what it had not dispatched; a cancelled one stays so.",
    headers: IDEMPOTENCY_HEADER,
    body: {
      schema: RetryRequest.meta({ id: "RetryRequest" }),
      example: { classes: ["provider", "timeout"] },
    },
    reply: theRun("The run; planned has grown by the attempts to come", {}),
    errors: [
      "invalid_request",
      "unknown_field",
      "not_found",
      "conflict",
      "in_progress",
      "idempotency_conflict",
      "too_large",
    ],
    handle: retryOne,
  },
  {
    id: "rescoreRun",
    method: "post",
    path: "/v1/runs/{id}/rescore",
    summary: "Score what an ended run left behind with another rubric, in a run of its own",
    description:
      "Its rollouts take over the stored trajectories, one for each place of the run: the policy is not called, judges are. What had failed there ends here as it did.",
    headers: IDEMPOTENCY_HEADER,
    body: {
      schema: RescoreRequest.meta({ id: "RescoreRequest" }),
      example: { environment: "gsm8k@1", name: "stricter" },
    },
    reply: {
      status: 202,
      description: "The new run; it goes on by itself",
      contentType: "application/json",
      schema: RunView,
      example: { ...RUN, status: "queued", name: "stricter", rescored_from: RUN.id },
      headers: CREATED_HEADERS,
    },
    errors: [
      "invalid_request",
      "unknown_field",
      "not_found",
      "conflict",
      "unmet_need",
      "url_not_allowed",
      "missing_judge",
      "idempotency_conflict",
      "too_large",
    ],
    handle: rescoreOne,
  },
  {
    id: "auditRun",
    method: "get",
    path: "/v1/runs/{id}/audit",
    summary: "Compare what four records say of a run, and name what differs",
    description:
      "The run's counters, its rows counted anew, their projection in the database, and the stored trajectories.",
    reply: {
      status: 200,
      description: "What each says; `holds` is true when nothing differs",
      contentType: "application/json",
      schema: RunAudit,
      example: AUDIT,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services, now } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.auditRun(context.env, context.var.scope, id, now())));
    },
  },
];

async function answer(
  context: ApiContext,
  change: (env: Env, scope: ApiContext["var"]["scope"], id: string) => Promise<Result<RunView>>,
): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const id = pathParam(context, "id");
  return context.json(unwrap(await change(context.env, context.var.scope, id)));
}

async function retryOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, RetryRequest);
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const retried = await services.retryRun(context.env, context.var.scope, id, request, options);
  return context.json(unwrap(retried));
}

async function rescoreOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, RescoreRequest);
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const made = await services.rescoreRun(context.env, context.var.scope, id, request, options);
  const { run, replayed } = unwrap(made);
  return creationReply(context, { value: run, replayed }, { folder: "/v1/runs", status: 202 });
}
