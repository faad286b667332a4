/** One rollout: read whole, cancelled, or gone on with in a run of its own. */
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
    reply: { description: "The rollout; before it is done, what is stored of it so far", schema: RolloutView },
    handle: (context) => answer(context, context.var.services.readRollout),
  },
  {
    id: "cancelRollout",
    route: "POST /v1/rollouts/{id}/cancel",
    permission: "rollouts:write",
    summary: "End one rollout early; its run goes on",
    description: "One that has answered and waits for its scores keeps its end, as one that has ended does.",
    headers: { "Idempotency-Key": "accepted and not needed: cancelling twice is cancelling once" },
    reply: {
      description: "The rollout as it stands; it ends cancelled: user once it has heard",
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
    summary: "Go on from the middle of an ended rollout, in a run of its own",
    description:
      "Its rollouts begin with the turns up to `turn`, the state after it and the environment's reply to it, as they are stored; the first call asks for the next turn. What was inherited is not counted as usage again.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: ForkRequest.meta({ id: "ForkRequest" }) },
    reply: {
      status: 202,
      description: "The new run; it goes on by itself",
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
