/**
 * The wire between a trainer and the platform: registration, leases, acknowledgements, weight versions. Steps count
 * from 1, policy versions from 0: batch n trains version n-1 into version n. Times are integer seconds.
 */
import * as z from "zod";
import {
  AnyObject,
  Applied,
  Count,
  EXAMPLE,
  MaybeNumber,
  MaybeText,
  named,
  namedInput,
  Positive,
  RunId,
  Seconds,
  Step,
  Version,
} from "./primitives.ts";
import { ShownText } from "./shown-text.ts";

const Id = ShownText.min(1).max(200);
const TrainerId = Id.meta({ example: "t0" });
const BatchId = Id.meta({ example: EXAMPLE.batch });
const Label = ShownText.max(200).meta({ example: "step_1" });
const LeaseToken = z.string().meta({ example: "kP2vJx0Zt9cQm4uB7yLw1sHd8fNa3eRg6iTo5jVbXzE" });
const Epoch = Positive;
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: "must be 64 hex digits" });
const BatchSha256 = Sha256.meta({ example: EXAMPLE.batch_sha256 });
const MOST_METRICS = 200;
export const TrainerMetrics = z
  .record(ShownText.max(100), MaybeNumber)
  .refine((values) => Object.keys(values).length <= MOST_METRICS, {
    error: `at most ${MOST_METRICS} names`,
  });

export const RegisterRequest = namedInput("RegisterRequest", {
  trainer_id: TrainerId,
  kind: ShownText.min(1).max(100).describe("what trains, e.g. prime-rl").meta({ example: "prime-rl" }),
  protocol: z.literal("rl.batch/1"),
  version: Version.optional().describe("version of the weights it holds; default: the last published"),
  last_acked: z
    .strictObject({ batch_id: Id, sha256: Sha256 })
    .nullable()
    .default(null)
    .describe("the last batch in its checkpoint; acknowledged now if its ack was lost")
    .meta({ example: null }),
  reset_to: Version.optional().describe("goes back to this version and voids everything sampled by later ones"),
});
export type RegisterRequestInput = z.input<typeof RegisterRequest>;
export const Registered = named("Registered", {
  epoch: Epoch.describe("increases with each registration; calls with an earlier one get 409 epoch_fenced"),
  next_step: Step,
  published: Version,
  delivery: z.enum(["pull", "push", "both"]),
  max_steps: Step.meta({ example: 200 }),
});
export type Registered = z.infer<typeof Registered>;

/** rl.batch/1: the contents of a batch. Immutable; `sha256` is over the raw digests of objects, then credits. */
export const BatchManifest = named("BatchManifest", {
  schema: z.literal("rl.batch/1"),
  run_id: RunId,
  batch_id: z.string().meta({ example: EXAMPLE.batch }),
  step: Step,
  generation: Version.describe("number of resets of the run when the batch was built"),
  train_version: Version.describe("step - 1: the version it trains"),
  samples: z.int().meta({ example: 8 }),
  rollouts: z.int().meta({ example: 8 }),
  groups: z.int().meta({ example: 1 }),
  tokens: z.int().describe("of all samples").meta({ example: 2710 }),
  trainable_tokens: z
    .int()
    .describe("sampled tokens that are trained on: the divisor of a token mean")
    .meta({ example: 960 }),
  min_policy_version: Version,
  max_policy_version: Version,
  estimator: z
    .object({ name: z.string(), version: z.int(), params: AnyObject })
    .meta({ example: { name: "mean", version: 1 } }),
  estimators: z
    .record(z.string(), z.object({ name: z.string(), version: z.int(), params: AnyObject }))
    .optional()
    .describe("by the `env` of rows, if members of a group of environments have settings of their own"),
  environment: z.string().meta({ example: "gsm8k@1.0.0" }),
  model: z.string().meta({ example: "qwen3-4b" }),
  sampling: AnyObject.meta({ example: { temperature: 1, top_p: 1 } }),
  objects: z
    .array(z.object({ sha256: Sha256, bytes: z.int(), format: z.string(), samples: z.int(), tokens: z.int() }))
    .meta({
      example: [
        {
          sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
          ...{ bytes: 8123, format: "rl.sample/1+msgpack+gzip", samples: 8, tokens: 2710 },
        },
      ],
    }),
  credits: z.object({ sha256: Sha256, bytes: z.int(), format: z.literal("rl.credit/1+jsonl") }).meta({
    example: { sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d", bytes: 912 },
  }),
  sha256: BatchSha256,
});
export type BatchManifest = z.infer<typeof BatchManifest>;

export const LeaseRequest = namedInput("LeaseRequest", {
  trainer_id: TrainerId,
  epoch: Epoch,
  want_step: Step,
  max_wait_s: z
    .number()
    .min(0)
    .max(60)
    .default(30)
    .describe("how long the request waits for a batch")
    .meta({ example: 30 }),
  ttl_s: z.int().min(5).max(86_400).optional().describe("default: lease_s of the run"),
});
export type LeaseRequestInput = z.input<typeof LeaseRequest>;
export const LeaseView = z.object({
  id: z.string().meta({ example: EXAMPLE.lease }),
  token: LeaseToken,
  expires_at: Seconds.meta({ example: 1_795_302_900 }),
  attempt: Positive,
});
export type LeaseView = z.infer<typeof LeaseView>;
export const Leased = named("Leased", { lease: LeaseView, manifest: BatchManifest });
export type Leased = z.infer<typeof Leased>;

export const HeartbeatRequest = namedInput("HeartbeatRequest", {
  token: LeaseToken,
  epoch: Epoch,
  progress: z
    .strictObject({ phase: ShownText.max(100), done: Count, total: Count })
    .optional()
    .meta({ example: { phase: "train", done: 1, total: 2 } }),
});
export type HeartbeatRequestInput = z.input<typeof HeartbeatRequest>;
/** A report that weights are published. */
export const WeightsOut = z.strictObject({
  label: Label.optional().describe("the engine's own name of the weights: stored, never parsed"),
  location: ShownText.max(2048).optional(),
  sha256: Sha256.optional().describe("of the weights"),
});
export type WeightsOut = z.infer<typeof WeightsOut>;
const PublishedWithAck = WeightsOut.optional().describe(
  "the new weights are available: reports `published` together with the acknowledgement",
);
export const AckRequest = namedInput("AckRequest", {
  token: LeaseToken,
  epoch: Epoch,
  batch_id: BatchId,
  sha256: BatchSha256,
  produced_version: Version.meta({ example: 1 }),
  metrics: TrainerMetrics.default({})
    .describe("`wait_s`: seconds it waited because this batch was not there; `train_s`: seconds it trained")
    .meta({ example: { loss: -0.031, grad_norm: 0.8 } }),
  published: PublishedWithAck,
});
export type AckRequestInput = z.input<typeof AckRequest>;
export const Acked = named("Acked", {
  batch_id: z.string().meta({ example: EXAMPLE.batch }),
  step: Step,
  next_step: Step.meta({ example: 2 }),
  published: Version,
  not_finite: z
    .array(z.string())
    .optional()
    .describe("metrics sent as NaN or an infinity: null in the series. Absent if none"),
});
export type Acked = z.infer<typeof Acked>;
export const NackRequest = namedInput("NackRequest", {
  token: LeaseToken,
  epoch: Epoch,
  reason: z.enum(["oom", "decode", "stale", "shutdown", "invalid"]),
  retryable: z.boolean().meta({ example: true }),
  message: z.string().max(2000).optional().meta({ example: "rows of 40k tokens" }),
});
export type NackRequestInput = z.input<typeof NackRequest>;

export const WeightVersionReport = namedInput("WeightVersionReport", {
  version: Version.meta({ example: 1 }),
  state: z.enum(["pending", "published", "applied", "failed"]).meta({ example: "applied" }),
  epoch: Epoch,
  replica: Id.optional().describe("the engine that applied it or failed to").meta({ example: "gpu-0" }),
  ...WeightsOut.shape,
});
export type WeightVersionReportInput = z.input<typeof WeightVersionReport>;
/** The published versions, and which replica serves which. */
export const WeightVersions = named("WeightVersions", {
  published: Version.meta({ example: 1 }),
  applied: Applied.meta({ example: { min: 1, max: 1, by_replica: { "gpu-0": 1 } } }),
  epoch: Count.describe("0: no trainer has registered").meta({ example: 1 }),
  generation: Version,
  versions: z
    .array(
      z.object({
        id: z.string().meta({ example: "wv_01ks2hb3n0m5c8w1r7qj4x9e2zk6f0sd2m" }),
        version: Version.meta({ example: 1 }),
        state: z.enum(["pending", "published", "applied", "failed", "retired"]).meta({ example: "applied" }),
        label: MaybeText.meta({ example: "step_1" }),
        location: MaybeText.meta({ example: "s3://weights/1" }),
        sha256: MaybeText,
        at: Seconds.meta({ example: 1_795_302_060 }),
      }),
    )
    .describe("the latest 100, newest first")
    .meta({ example: [{}] }),
});
export type WeightVersions = z.infer<typeof WeightVersions>;

/** The body of a push, signed as a webhook. */
export const BatchOffer = named("BatchOffer", {
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
    base_url: z.string().describe("URL of the platform, for fetching objects and sending acks"),
  }),
});
export type BatchOffer = z.infer<typeof BatchOffer>;

/** The reply, with status 200, of a trainer that has already trained the offered batch. */
export const OfferAcked = z.object({
  acked: z.literal(true),
  sha256: BatchSha256,
  produced_version: Version,
  metrics: TrainerMetrics.default({}),
  published: PublishedWithAck,
});
export type OfferAcked = z.output<typeof OfferAcked>;
