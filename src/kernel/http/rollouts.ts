/** One rollout: read it, cancel it, or fork it in a new run. */
import { RolloutView, RunView } from "../../contract/run.ts";
import { ForkRequest } from "../../contract/run-control.ts";
import { answer, ask, CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./answer.ts";
import type { ApiContext, Operation } from "./operation.ts";
import { RUN_COST_MS } from "./pace.ts";
import { CREATED_RUN, UNPAID } from "./runs.ts";

export const rolloutOperations: readonly Operation[] = [
  {
    id: "getRollout",
    route: "GET /v1/rollouts/{id}",
    permission: "rollouts:read",
    summary: "Read a rollout: messages, turns, usage, errors and scores",
    reply: { description: "The rollout; before it is done, what is stored so far", schema: RolloutView },
    handle: (context) => answer(context, context.var.services.readRollout),
  },
  {
    id: "cancelRollout",
    route: "POST /v1/rollouts/{id}/cancel",
    permission: "rollouts:write",
    summary: "Cancel one rollout; its run continues",
    description: "A rollout that has ended, or only waits for its scores, keeps its outcome.",
    headers: { "Idempotency-Key": "accepted but not needed: cancelling is idempotent" },
    reply: {
      description: "The rollout as it is now; it ends as cancelled: user once it is notified",
      schema: RolloutView,
      example: { outcome: "cancelled", reason: "user", reward: null, scores: [] },
    },
    handle: (context) => answer(context, context.var.services.cancelRollout),
  },
  {
    id: "forkRollout",
    route: "POST /v1/rollouts/{id}/fork",
    costMs: RUN_COST_MS,
    permission: "runs:write",
    summary: "Fork an ended rollout from one of its turns, in a new run",
    description:
      "Its rollouts begin with the stored turns up to `turn`, the state after it and the environment's reply to it; the first call asks for the next turn. Inherited turns are not counted as usage again.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: ForkRequest.meta({ id: "ForkRequest" }) },
    reply: {
      status: 202,
      description: "The new run, already started",
      schema: RunView,
      example: { status: "queued", name: null, forked_from: {} },
      headers: CREATED_HEADERS,
    },
    errors: ["conflict", "unmet_need", "url_not_allowed", "idempotency_conflict", ...UNPAID],
    handle: forkOne,
  },
];

async function forkOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, ForkRequest);
  const { run, replayed } = await ask(context, context.var.services.forkRollout, request, options);
  return creationReply(context, CREATED_RUN, run, replayed);
}
