/** One rollout: read whole, cancelled, or gone on with in a run of its own. */
import { RolloutView, RunView } from "../contract/run.ts";
import { ForkRequest } from "../contract/run-control.ts";
import { CREATED_HEADERS, creationReply, IDEMPOTENCY_HEADER, readCreation } from "./creation.ts";
import { unwrap } from "./errors.ts";
import { idempotencyKeyOf } from "./input.ts";
import { ROLLOUT, RUN } from "./openapi/examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

export const rolloutOperations: readonly Operation[] = [
  {
    id: "getRollout",
    method: "get",
    path: "/v1/rollouts/{id}",
    summary: "Read a rollout: messages, turns, usage, errors and scores",
    reply: {
      status: 200,
      description: "The rollout; before it is done, what is stored of it so far",
      contentType: "application/json",
      schema: RolloutView,
      example: ROLLOUT,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.readRollout(context.env, context.var.scope, id)));
    },
  },
  {
    id: "cancelRollout",
    method: "post",
    path: "/v1/rollouts/{id}/cancel",
    summary: "End one rollout early; its run goes on",
    description: "One that has answered and waits for its scores keeps its end, as one that has ended does.",
    headers: { "Idempotency-Key": "accepted and not needed: cancelling twice is cancelling once" },
    reply: {
      status: 200,
      description: "The rollout as it stands; it ends cancelled: user once it has heard",
      contentType: "application/json",
      schema: RolloutView,
      example: { ...ROLLOUT, outcome: "cancelled", reason: "user", reward: null, scores: [] },
    },
    errors: ["not_found"],
    handle: async (context) => {
      idempotencyKeyOf(context.req.raw);
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.cancelRollout(context.env, context.var.scope, id)));
    },
  },
  {
    id: "forkRollout",
    method: "post",
    path: "/v1/rollouts/{id}/fork",
    summary: "Go on from the middle of an ended rollout, in a run of its own",
    description:
      "Its rollouts begin with the turns up to `turn`, the state after it and the environment's reply to it, as they are stored; the first call asks for the next turn. What was inherited is not counted as usage again.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: ForkRequest.meta({ id: "ForkRequest" }), example: { turn: 0, rollouts: 4 } },
    reply: {
      status: 202,
      description: "The new run; it goes on by itself",
      contentType: "application/json",
      schema: RunView,
      example: {
        ...{ ...RUN, status: "queued", num_examples: 1, name: null },
        forked_from: { rollout_id: ROLLOUT.id, turn: 0 },
      },
      headers: CREATED_HEADERS,
    },
    errors: [
      "invalid_request",
      "unknown_field",
      "not_found",
      "conflict",
      "unmet_need",
      "url_not_allowed",
      "idempotency_conflict",
      "too_large",
    ],
    handle: forkOne,
  },
];

async function forkOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, ForkRequest);
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const forked = await services.forkRollout(context.env, context.var.scope, id, request, options);
  const { run, replayed } = unwrap(forked);
  return creationReply(context, { value: run, replayed }, { folder: "/v1/runs", status: 202 });
}
