/** The trainer of a training run: registration, leases, its token. docs/training.md tells the whole contract. */
import { Leased, LeaseRequest, Registered, RegisterRequest } from "../contract/trainer-wire.ts";
import { TrainerSecrets } from "../contract/training-view.ts";
import { unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, readJson } from "./input.ts";
import { LEASED, REGISTERED } from "./openapi/trainer-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const AGAIN = { "Idempotency-Key": "accepted and not needed: asking twice does no harm" };

export const trainerOperations: readonly Operation[] = [
  {
    id: "registerTrainer",
    method: "post",
    path: "/v1/runs/{id}/trainer/register",
    trainer: true,
    summary: "Begin to train a run, or come back with a checkpoint",
    description:
      "Each registration has an epoch of its own, and calls with an earlier one get `epoch_fenced`. `last_acked` counts as acknowledged, should its ack have been lost. With weights older than those published it is a `conflict` that names `published`, until `reset_to` says that everything sampled since is to be void.",
    headers: AGAIN,
    body: {
      schema: RegisterRequest,
      example: { trainer_id: "t0", kind: "prime-rl", protocol: "rl.batch/1", last_acked: null },
    },
    reply: {
      status: 200,
      description: "The epoch every later call names, and the step to ask for",
      contentType: "application/json",
      schema: Registered,
      example: REGISTERED,
    },
    errors: ["not_found", "version_ahead", "conflict", "run_finished"],
    handle: registerOne,
  },
  {
    id: "leaseBatch",
    method: "post",
    path: "/v1/runs/{id}/trainer/lease",
    trainer: true,
    summary: "Take the next batch; the request waits until there is one",
    description:
      "Batches come in the order of their steps, one at a time. Asked again by the same trainer while it has the lease, it is the same lease.",
    headers: AGAIN,
    body: {
      schema: LeaseRequest,
      example: { trainer_id: "t0", epoch: 1, want_step: 1, max_wait_s: 30 },
    },
    reply: {
      status: 200,
      description: "The batch, until the lease ends",
      contentType: "application/json",
      schema: Leased,
      example: LEASED,
      empty:
        "There is none yet: `x-queue-state` says why (`waiting_for_rollouts`, `paused`, `draining`), `retry-after` when to ask again",
    },
    errors: ["not_found", "epoch_fenced", "step_mismatch", "conflict", "run_finished"],
    handle: leaseOne,
  },
  {
    id: "rotateTrainerToken",
    method: "post",
    path: "/v1/runs/{id}/trainer/token",
    summary: "Make another token for the run's trainer",
    description: "The one before works for another hour. Asked twice, it makes two.",
    headers: { "Idempotency-Key": "accepted and not looked at: a token is shown once" },
    reply: {
      status: 200,
      description: "The token, shown this once; what offers are signed by stays as it is",
      contentType: "application/json",
      schema: TrainerSecrets,
      example: { token: "rct_Zt9cQm4uB7yLw1sHd8fNa3eRg6iTo5jVbXzEkP2vJx0", push_secret: null },
    },
    errors: ["not_found"],
    handle: rotateOne,
  },
];

async function registerOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const { protocol: _, ...asked } = parseAs(RegisterRequest, await readJson(context.req.raw));
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const registered = services.askTrainer(context.env, context.var.scope, id, (trainer) => trainer.register(asked));
  return context.json(unwrap(await registered));
}

async function leaseOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const asked = parseAs(LeaseRequest, await readJson(context.req.raw));
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const answer = unwrap(
    await services.askTrainer(context.env, context.var.scope, id, (trainer) => trainer.lease(asked)),
  );
  if (!("waiting" in answer)) return context.json(answer);
  return context.body(null, 204, {
    "x-queue-state": answer.waiting,
    "retry-after": String(answer.retry_after_s),
  });
}

async function rotateOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const { services, now } = context.var.dependencies;
  const id = pathParam(context, "id");
  return context.json(unwrap(await services.rotateTrainerToken(context.env, context.var.scope, id, now())));
}
