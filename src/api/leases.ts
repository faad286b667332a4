/** A batch that a trainer has in hand: kept, trained, or given back. */
import * as z from "zod";
import type { Json } from "../contract/json.ts";
import { Acked, AckRequest, HeartbeatRequest, NackRequest } from "../contract/trainer-wire.ts";
import { parseId } from "../core/ids.ts";
import { readMetrics } from "../core/training/read-metrics.ts";
import type { Answer, TrainerRpc } from "../runtime/contract/training-wire.ts";
import { idMac } from "../runtime/kit/secrets.ts";
import { Refusal, unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, readJson } from "./input.ts";
import { ACKED, BATCH_SHA256, PROOF } from "./openapi/trainer-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const ONE = "/v1/leases/{id}";
const AGAIN = { "Idempotency-Key": "accepted and not needed: asking twice is asking once" };
const Kept = z.object({ expires_at: z.int() });
const GivenBack = z.object({ state: z.enum(["ready", "dead"]) });

export const leaseOperations: readonly Operation[] = [
  {
    id: "heartbeatLease",
    method: "post",
    path: `${ONE}/heartbeat`,
    trainer: true,
    summary: "Keep a lease: the trainer is at work on its batch",
    headers: AGAIN,
    body: {
      schema: HeartbeatRequest,
      example: { ...PROOF, progress: { phase: "train", done: 1, total: 2 } },
    },
    reply: {
      status: 200,
      description: "When it ends without another heartbeat",
      contentType: "application/json",
      schema: Kept,
      example: { expires_at: 1_795_303_800 },
    },
    errors: ["not_found", "epoch_fenced", "lease_lost", "wrong_lease_token", "run_finished"],
    handle: async (context) => {
      const { body, ask } = await asked(context, HeartbeatRequest);
      return context.json(await ask((trainer, id) => trainer.heartbeat(id, body)));
    },
  },
  {
    id: "ackLease",
    method: "post",
    path: `${ONE}/ack`,
    trainer: true,
    summary: "Say that the batch is trained, and in the checkpoint",
    description:
      "Said again under the same lease, it is answered the same. A lease that has ended meanwhile still counts, unless its batch was handed out again. `metrics` stand in the run's series under `trainer/`; a bare NaN or Infinity is null there, and named in `not_finite`.",
    headers: AGAIN,
    body: {
      schema: AckRequest,
      example: {
        ...PROOF,
        batch_id: ACKED.batch_id,
        sha256: BATCH_SHA256,
        produced_version: 1,
        metrics: { loss: -0.031, grad_norm: 0.8 },
      },
    },
    reply: {
      status: 200,
      description: "The step to ask for next",
      contentType: "application/json",
      schema: Acked,
      example: ACKED,
    },
    errors: ["not_found", "epoch_fenced", "lease_lost", "wrong_lease_token", "wrong_batch", "conflict"],
    handle: async (context) => {
      let not_finite: readonly string[] = [];
      const { body, ask } = await asked(context, AckRequest, (text) => {
        const read = readMetrics(text);
        not_finite = read.not_finite;
        return read.body;
      });
      return context.json(await ask((trainer, id) => trainer.ack(id, { ...body, not_finite })));
    },
  },
  {
    id: "nackLease",
    method: "post",
    path: `${ONE}/nack`,
    trainer: true,
    summary: "Give a batch back untrained",
    description:
      "It is handed out again, with `attempt` one higher (`shutdown` costs none). After `max_attempts`, or when not `retryable`, it is dead and the run pauses with the reason.",
    headers: AGAIN,
    body: {
      schema: NackRequest,
      example: { ...PROOF, reason: "oom", retryable: true, message: "rows of 40k tokens" },
    },
    reply: {
      status: 200,
      description: "What became of the batch",
      contentType: "application/json",
      schema: GivenBack,
      example: { state: "ready" },
    },
    errors: ["not_found", "epoch_fenced", "lease_lost", "wrong_lease_token"],
    handle: async (context) => {
      const { body, ask } = await asked(context, NackRequest);
      return context.json(await ask((trainer, id) => trainer.nack(id, body)));
    },
  },
];

type Asking = <T>(call: (trainer: TrainerRpc, lease: string) => Promise<Answer<T>>) => Promise<T>;

/** The body, and the way to the run that the lease's id names. */
async function asked<Schema extends z.ZodType>(
  context: ApiContext,
  schema: Schema,
  parse?: (text: string) => Json,
): Promise<{ body: z.output<Schema>; ask: Asking }> {
  idempotencyKeyOf(context.req.raw);
  const body = parseAs(schema, await readJson(context.req.raw, parse));
  const id = pathParam(context, "id");
  const parsed = parseId(id, idMac(context.env.ROLLCALL_SECRET));
  if (parsed?.kind !== "lease") {
    throw new Refusal({ code: "not_found", message: `no lease ${id}`, param: "id" });
  }
  const { services } = context.var.dependencies;
  const ask: Asking = async (call) =>
    unwrap(await services.askTrainer(context.env, context.var.scope, parsed.runId, (trainer) => call(trainer, id)));
  return { body, ask };
}
