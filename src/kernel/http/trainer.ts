/**
 * The trainer of a training run: registration, leases, weight versions, its token. The contract is in docs/training.md.
 */
import * as z from "zod";
import { permits } from "../../contract/identity.ts";
import type { Json } from "../../contract/json.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import {
  Acked,
  AckRequest,
  HeartbeatRequest,
  Leased,
  LeaseRequest,
  NackRequest,
  Registered,
  RegisterRequest,
  WeightVersionReport,
  WeightVersions,
} from "../../contract/trainer-wire.ts";
import { TrainerSecrets } from "../../contract/training-view.ts";
import { readMetrics } from "../../core/training/read-metrics.ts";
import { readId } from "../kit/secrets.ts";
import type { Answer, TrainerRpc } from "../messages/training-wire.ts";
import { answer, ask, readBody, readQuery } from "./answer.ts";
import { Refusal, unwrap } from "./errors.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const ONE = "/v1/leases/{id}";
const FOLDER = "/v1/runs/{id}/weight-versions";
const AGAIN = { "Idempotency-Key": "accepted but not needed: the request is idempotent" };
const NO_HARM = { "Idempotency-Key": "accepted but not needed: a repeat does no harm" };
const Kept = z.object({ expires_at: z.int().meta({ example: 1_795_303_800 }) });
/** In seconds; at most a day. */
const RotateTokenQuery = z.strictObject({
  overlap_s: wholeNumber(0, 86_400).default(3600).describe("how long the previous token still works"),
});
const GivenBack = z.object({ state: z.enum(["ready", "dead"]) });

export const trainerOperations: readonly Operation[] = [
  {
    id: "registerTrainer",
    unlogged: true,
    route: "POST /v1/runs/{id}/trainer/register",
    permission: "trainer",
    trainer: true,
    summary: "Register a trainer, for the first time or with a checkpoint",
    description:
      "Each registration gets a new epoch, and calls with an earlier one get `epoch_fenced`. `last_acked` counts as acknowledged even if its ack was lost. With weights older than those published, the answer is a `conflict` that names `published`, unless `reset_to` voids everything sampled since.",
    headers: NO_HARM,
    body: { schema: RegisterRequest },
    reply: { description: "The epoch that later calls must send, and the next step", schema: Registered },
    errors: ["version_ahead", "conflict", "run_finished"],
    handle: (context) =>
      askTrainer(context, RegisterRequest, (trainer, { protocol: _, ...asked }) => trainer.register(asked)),
  },
  {
    id: "leaseBatch",
    unlogged: true,
    route: "POST /v1/runs/{id}/trainer/lease",
    permission: "trainer",
    trainer: true,
    summary: "Lease the next batch; the request waits until there is one",
    description:
      "Batches come in the order of their steps, one at a time. A trainer that already has a lease gets the same lease.",
    headers: NO_HARM,
    body: { schema: LeaseRequest },
    reply: {
      description: "The batch, until the lease ends",
      schema: Leased,
      empty:
        "There is none yet: `x-queue-state` says why (`waiting_for_rollouts`, `paused`, `draining`), `retry-after` when to retry",
    },
    errors: ["epoch_fenced", "step_mismatch", "conflict", "run_finished"],
    handle: leaseOne,
  },
  {
    id: "rotateTrainerToken",
    urgent: true,
    route: "POST /v1/runs/{id}/trainer/token",
    permission: "runs:write",
    summary: "Create a new token for the run's trainer",
    description:
      "The previous token works for another hour, or for `overlap_s`; 0 ends it within 5 s. Older ones end at once. Each request creates a token.",
    query: RotateTokenQuery,
    headers: { "Idempotency-Key": "accepted but ignored: a token is shown once" },
    reply: {
      description: "The token, shown only here; the secret that signs offers does not change",
      schema: TrainerSecrets,
    },
    handle: (context) => {
      const { overlap_s } = readQuery(context, RotateTokenQuery);
      return answer(context, context.var.services.rotateTrainerToken, context.var.now(), overlap_s * 1000);
    },
  },
  {
    id: "heartbeatLease",
    unlogged: true,
    route: `POST ${ONE}/heartbeat`,
    permission: "trainer",
    trainer: true,
    summary: "Extend a lease (heartbeat)",
    headers: AGAIN,
    body: { schema: HeartbeatRequest },
    reply: { description: "When the lease ends without another heartbeat", schema: Kept },
    errors: ["epoch_fenced", "lease_lost", "wrong_lease_token", "run_finished"],
    handle: (context) =>
      askLease(context, HeartbeatRequest, (trainer, lease, asked) => trainer.heartbeat(lease, asked)),
  },
  {
    id: "ackLease",
    unlogged: true,
    route: `POST ${ONE}/ack`,
    permission: "trainer",
    trainer: true,
    summary: "Acknowledge a batch: it is trained and in the checkpoint",
    description:
      "A repeat under the same lease gets the same answer. A lease that has expired still counts, unless its batch was leased again. `metrics` appear in the run's series under `trainer/`; a bare NaN or Infinity becomes null, and is named in `not_finite`.",
    headers: AGAIN,
    body: { schema: AckRequest },
    reply: { description: "The next step", schema: Acked },
    errors: ["epoch_fenced", "lease_lost", "wrong_lease_token", "wrong_batch", "conflict"],
    handle: ackOne,
  },
  {
    id: "nackLease",
    unlogged: true,
    route: `POST ${ONE}/nack`,
    permission: "trainer",
    trainer: true,
    summary: "Return a batch untrained",
    description:
      "It is leased again, with `attempt` one higher (not after `shutdown`). After `max_attempts`, or if not `retryable`, the batch is dead and the run pauses with the reason.",
    headers: AGAIN,
    body: { schema: NackRequest },
    reply: { description: "The state of the batch", schema: GivenBack },
    errors: ["epoch_fenced", "lease_lost", "wrong_lease_token"],
    handle: (context) => askLease(context, NackRequest, (trainer, lease, asked) => trainer.nack(lease, asked)),
  },
];

/** Weight versions: what a trainer reports, and what is served where. The weights themselves are never sent here. */
export const weightOperations: readonly Operation[] = [
  {
    id: "reportWeightVersion",
    unlogged: true,
    route: `POST ${FOLDER}`,
    permission: ["trainer", "engine"],
    trainer: true,
    summary: "Report the state of a weight version",
    description:
      "`published`: the weights are available, and rollouts that waited for them continue. `applied`: a replica serves it; new groups are sampled by the lowest version applied. Report both after the acknowledgement of their batch, or for a pushed batch before the answer to its offer. `pending` and `failed` are only recorded. Versions increase within an epoch; a repeat changes nothing.",
    headers: AGAIN,
    body: { schema: WeightVersionReport },
    reply: { description: "The versions after the report", schema: WeightVersions },
    errors: ["epoch_fenced", "version_ahead", "conflict"],
    handle: reportWeights,
  },
  {
    id: "listWeightVersions",
    route: `GET ${FOLDER}`,
    permission: ["trainer", "engine", "runs:read"],
    trainer: true,
    summary: "Read the weight versions, and which replica serves which",
    reply: { description: "The versions", schema: WeightVersions },
    handle: (context) => answer(context, context.var.services.readWeightVersions),
  },
];

/** The answer of the run's trainer object to a body of this schema. */
async function askTrainer<Schema extends z.ZodType, T>(
  context: ApiContext,
  schema: Schema,
  call: (trainer: TrainerRpc, asked: z.output<Schema>) => Promise<Answer<T>>,
): Promise<Response> {
  const asked = await readBody(context, schema);
  return Response.json(await tell(context, pathParam(context, "id"), (trainer) => call(trainer, asked)));
}

async function tell<T>(
  context: ApiContext,
  runId: string,
  call: (trainer: TrainerRpc) => Promise<Answer<T>>,
): Promise<T> {
  return unwrap(await context.var.services.askTrainer(context.env, context.var.scope, runId, call));
}

/** An engine may report what it serves; only the trainer may report that new weights are published. */
async function reportWeights(context: ApiContext): Promise<Response> {
  const asked = await readBody(context, WeightVersionReport);
  if (!permits(context.var.caller.permissions, "trainer")) await allowEngine(context, asked);
  return Response.json(await tell(context, pathParam(context, "id"), (trainer) => trainer.report(asked)));
}

async function allowEngine(
  context: ApiContext,
  { state, replica, version }: z.output<typeof WeightVersionReport>,
): Promise<void> {
  const served = state === "applied" || state === "failed";
  if (!served || replica === undefined) {
    const message = "a key without the scope trainer may only report the state applied or failed, with replica";
    throw new Refusal({ code: "forbidden", message, param: served ? "replica" : "state" });
  }
  const { published } = await ask(context, context.var.services.readWeightVersions);
  if (version <= published) return;
  const message = `version ${version} is not published yet: the trainer has to report that first`;
  throw new Refusal({ code: "version_ahead", message, param: "version" });
}

async function leaseOne(context: ApiContext): Promise<Response> {
  const asked = await readBody(context, LeaseRequest);
  const answered = await tell(context, pathParam(context, "id"), (trainer) => trainer.lease(asked));
  if (!("waiting" in answered)) return context.json(answered);
  return context.body(null, 204, {
    "x-queue-state": answered.waiting,
    "retry-after": String(answered.retry_after_s),
  });
}

/** The same for the run that is named in the id of a lease. */
async function askLease<Schema extends z.ZodType, T>(
  context: ApiContext,
  schema: Schema,
  call: (trainer: TrainerRpc, lease: string, asked: z.output<Schema>) => Promise<Answer<T>>,
  parse?: (text: string) => Json,
): Promise<Response> {
  const asked = await readBody(context, schema, parse);
  const id = pathParam(context, "id");
  const parsed = readId(context.env, id);
  const none = { code: "not_found", message: `no lease ${id}`, param: "id" } as const;
  if (parsed?.kind !== "lease") throw new Refusal(none);
  const { env, scope, services } = { env: context.env, ...context.var };
  const answered = await services.askTrainer(env, scope, parsed.runId, (trainer) => call(trainer, id, asked));
  // A caller without access to the run must not learn its id.
  if (!answered.ok && answered.error.code === "not_found") throw new Refusal(none);
  return Response.json(unwrap(answered));
}

async function ackOne(context: ApiContext): Promise<Response> {
  let not_finite: readonly string[] = [];
  const parse = (text: string): Json => {
    const read = readMetrics(text);
    not_finite = read.not_finite;
    return read.body;
  };
  return await askLease(
    context,
    AckRequest,
    (trainer, lease, asked) => trainer.ack(lease, { ...asked, not_finite }),
    parse,
  );
}
