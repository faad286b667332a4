/**
 * What a trainer and the platform say to each other over HTTP: registration, leases, acknowledgements, weight versions.
 * Steps count from 1, policy versions from 0: batch n trains version n-1 into version n. Times are integer seconds.
 */
import * as z from "zod";
import { AnyObject, Count, MaybeNumber, Positive, Seconds, Step, Version } from "./primitives.ts";
import { ShownText } from "./shown-text.ts";

const Id = ShownText.min(1).max(200);
const Epoch = z.int().min(1);
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: "must be 64 hex digits" });
const MOST_METRICS = 200;
export const TrainerMetrics = z
  .record(ShownText.max(100), MaybeNumber)
  .refine((values) => Object.keys(values).length <= MOST_METRICS, {
    error: `at most ${MOST_METRICS} names`,
  });

export const RegisterRequest = z
  .strictObject({
    trainer_id: Id,
    kind: ShownText.min(1).max(100).describe("what trains, e.g. prime-rl"),
    protocol: z.literal("rl.batch/1"),
    version: Version.optional().describe("of the weights it holds; absent: those last published"),
    last_acked: z
      .strictObject({ batch_id: Id, sha256: Sha256 })
      .nullable()
      .default(null)
      .describe("the last batch in its checkpoint: acknowledged now, if its ack was lost"),
    reset_to: Version.optional().describe("goes back to this version: everything sampled by later ones is void"),
  })
  .meta({ id: "RegisterRequest" });
export type RegisterRequestInput = z.input<typeof RegisterRequest>;
export const Registered = z
  .object({
    epoch: Epoch.describe("later registrations get later ones; calls with an earlier one get 409 epoch_fenced"),
    next_step: Step,
    published: Version,
    delivery: z.enum(["pull", "push", "both"]),
    max_steps: Step,
  })
  .meta({ id: "Registered" });
export type Registered = z.infer<typeof Registered>;

/** rl.batch/1: what a batch is made of. Immutable; `sha256` is over the raw digests of the objects, then of the credits. */
export const BatchManifest = z
  .object({
    schema: z.literal("rl.batch/1"),
    run_id: z.string(),
    batch_id: z.string(),
    step: Step,
    generation: Version.describe("resets the run has lived through when it was cut"),
    train_version: Version.describe("step - 1: the version it trains"),
    samples: z.int(),
    rollouts: z.int(),
    groups: z.int(),
    tokens: z.int().describe("of all samples"),
    trainable_tokens: z.int().describe("sampled ones that train: the N a token mean divides by"),
    min_policy_version: Version,
    max_policy_version: Version,
    estimator: z.object({
      name: z.string(),
      version: z.int(),
      params: AnyObject,
    }),
    environment: z.string(),
    model: z.string(),
    sampling: AnyObject,
    objects: z.array(
      z.object({
        sha256: Sha256,
        bytes: z.int(),
        format: z.string(),
        samples: z.int(),
        tokens: z.int(),
      }),
    ),
    credits: z.object({ sha256: Sha256, bytes: z.int(), format: z.literal("rl.credit/1+jsonl") }),
    sha256: Sha256,
  })
  .meta({ id: "BatchManifest" });
export type BatchManifest = z.infer<typeof BatchManifest>;

export const LeaseRequest = z
  .strictObject({
    trainer_id: Id,
    epoch: Epoch,
    want_step: Step,
    max_wait_s: z.number().min(0).max(60).default(30).describe("how long the request may wait for a batch"),
    ttl_s: z.int().min(5).max(86_400).optional().describe("default: lease_s of the run"),
  })
  .meta({ id: "LeaseRequest" });
export type LeaseRequestInput = z.input<typeof LeaseRequest>;
export const LeaseView = z.object({
  id: z.string(),
  token: z.string(),
  expires_at: Seconds,
  attempt: Positive,
});
export type LeaseView = z.infer<typeof LeaseView>;
export const Leased = z.object({ lease: LeaseView, manifest: BatchManifest }).meta({ id: "Leased" });
export type Leased = z.infer<typeof Leased>;

export const HeartbeatRequest = z
  .strictObject({
    token: z.string(),
    epoch: Epoch,
    progress: z.strictObject({ phase: ShownText.max(100), done: Count, total: Count }).optional(),
  })
  .meta({ id: "HeartbeatRequest" });
export type HeartbeatRequestInput = z.input<typeof HeartbeatRequest>;
/** What may be said of weights that are out. */
export const WeightsOut = z.strictObject({
  label: ShownText.max(200).optional().describe("the engine's own name of the weights: kept, never parsed"),
  location: ShownText.max(2048).optional(),
  sha256: Sha256.optional().describe("of the weights"),
});
export type WeightsOut = z.infer<typeof WeightsOut>;
const PublishedWithAck = WeightsOut.optional().describe(
  "the weights it made are out: as a report of `published`, taken together with the acknowledgement",
);
export const AckRequest = z
  .strictObject({
    token: z.string(),
    epoch: Epoch,
    batch_id: Id,
    sha256: Sha256,
    produced_version: Version,
    metrics: TrainerMetrics.default({}).describe(
      "`wait_s`: seconds it waited because this batch was not there; `train_s`: seconds it trained",
    ),
    published: PublishedWithAck,
  })
  .meta({ id: "AckRequest" });
export type AckRequestInput = z.input<typeof AckRequest>;
export const Acked = z
  .object({
    batch_id: z.string(),
    step: Step,
    next_step: Step,
    published: Version,
    not_finite: z
      .array(z.string())
      .optional()
      .describe("metrics that came as NaN or an infinity: null in the series. Absent where none did"),
  })
  .meta({ id: "Acked" });
export type Acked = z.infer<typeof Acked>;
export const NackRequest = z
  .strictObject({
    token: z.string(),
    epoch: Epoch,
    reason: z.enum(["oom", "decode", "stale", "shutdown", "invalid"]),
    retryable: z.boolean(),
    message: z.string().max(2000).optional(),
  })
  .meta({ id: "NackRequest" });
export type NackRequestInput = z.input<typeof NackRequest>;

export const WeightVersionReport = z
  .strictObject({
    version: Version,
    state: z.enum(["pending", "published", "applied", "failed"]),
    epoch: Epoch,
    replica: Id.optional().describe("the engine that applied it, or failed to"),
    ...WeightsOut.shape,
  })
  .meta({ id: "WeightVersionReport" });
export type WeightVersionReportInput = z.input<typeof WeightVersionReport>;
/** Which versions there are, and who serves which. */
export const WeightLedger = z
  .object({
    published: Version,
    applied: z.object({ min: Version, max: Version, by_replica: z.record(z.string(), Version) }),
    epoch: Count.describe("0: no trainer has registered"),
    generation: Version,
    versions: z
      .array(
        z.object({
          id: z.string(),
          version: Version,
          state: z.enum(["pending", "published", "applied", "failed", "retired"]),
          label: z.string().nullable(),
          location: z.string().nullable(),
          sha256: z.string().nullable(),
          at: Seconds,
        }),
      )
      .describe("the latest 100, newest first"),
  })
  .meta({ id: "WeightLedger" });
export type WeightLedger = z.infer<typeof WeightLedger>;

/** The body of a push, signed as a webhook. */
export const BatchOffer = z
  .object({
    type: z.literal("trainer.batch.offer"),
    timestamp: z.string().describe("ISO 8601"),
    data: z.object({
      run_id: z.string(),
      batch_id: z.string(),
      step: Step,
      epoch: Count,
      lease: LeaseView,
      manifest: BatchManifest.optional().describe("inline up to 20 kB"),
      manifest_url: z.string().optional(),
      base_url: z.string().describe("of the platform: where objects are fetched and acks go"),
    }),
  })
  .meta({ id: "BatchOffer" });
export type BatchOffer = z.infer<typeof BatchOffer>;

/** What a trainer answers, with 200, that has trained a batch before it answers its offer. */
export const OfferAcked = z.object({
  acked: z.literal(true),
  sha256: Sha256,
  produced_version: Version,
  metrics: TrainerMetrics.default({}),
  published: PublishedWithAck,
});
export type OfferAcked = z.output<typeof OfferAcked>;
