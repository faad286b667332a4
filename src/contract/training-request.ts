/**
 * What a training run is asked with. Its rollouts are grouped by task, scored, credited against their group and cut into
 * batches for an external trainer, which reports weight versions back (docs/training.md).
 */
import * as z from "zod";
import { EvalRequest } from "./eval-request.ts";
import { LIMITS } from "./limits.ts";
import { WebAddress } from "./shown-text.ts";

const Fraction = z.number().min(0).max(1);
const Step = z.int().min(1);

export const Advantage = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("mean") }),
  z.strictObject({
    name: z.literal("mean_std"),
    sd: z.enum(["population", "sample"]).default("sample"),
    eps: z.number().positive().default(1e-4).describe("added to the standard deviation"),
    singleton: z.enum(["zero", "raw"]).default("zero").describe("raw: a group of one keeps its reward"),
  }),
  z.strictObject({
    name: z.literal("rloo"),
    singleton: z.enum(["zero", "raw"]).default("zero"),
  }),
  z.strictObject({ name: z.literal("max_rl") }),
  z.strictObject({ name: z.literal("none").describe("the trainer computes its own") }),
]);
export type Advantage = z.output<typeof Advantage>;

export const BatchSize = z.union([
  z.strictObject({ rollouts: z.int().min(1).max(LIMITS.batchRollouts) }),
  z.strictObject({ tokens: z.int().min(1) }),
]);
export type BatchSize = z.output<typeof BatchSize>;

export const Curriculum = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("cycle").describe("every task in turn") }),
  z.strictObject({
    name: z.literal("difficulty").describe("tasks drawn from pools by their latest mean reward"),
    hard: z.strictObject({ up_to: Fraction, weight: z.number().min(0) }).default({ up_to: 0.25, weight: 0.2 }),
    normal: z.strictObject({ up_to: Fraction, weight: z.number().min(0) }).default({ up_to: 0.75, weight: 1 }),
    easy: z.strictObject({ weight: z.number().min(0) }).default({ weight: 0.2 }),
    unseen: z.strictObject({ weight: z.number().min(0) }).default({ weight: 1 }),
  }),
]);
export type Curriculum = z.output<typeof Curriculum>;

/** Shares of the group's mean reward taken off for length; `r' = r - mean * (output*o/max(o) + input*i/max(i) + turns*t/max(t))`. */
export const LengthPenalty = z.strictObject({
  output: z.number().min(0).default(0.25),
  input: z.number().min(0).default(0.1),
  turns: z.number().min(0).default(0.1),
});
export type LengthPenalty = z.output<typeof LengthPenalty>;

export const TrainerTarget = z
  .strictObject({
    delivery: z.enum(["pull", "push", "both"]).default("pull"),
    url: WebAddress.optional().describe("where batches are offered; for push and both"),
    encoding: z.enum(["msgpack", "jsonl"]).default("msgpack").describe("of the sample objects, gzipped either way"),
    max_attempts: z
      .int()
      .min(1)
      .max(100)
      .default(5)
      .describe("leases of one batch that may come to nothing before it is dead"),
    lease_s: z.int().min(5).max(86_400).default(900).describe("a lease without a heartbeat ends after this"),
  })
  .refine(({ delivery, url }) => delivery === "pull" || url !== undefined, {
    error: "push and both need the trainer's url",
    path: ["url"],
  });
export type TrainerTarget = z.output<typeof TrainerTarget>;

const { kind: _kind, num_examples: _n, rollouts_per_example: _k, min_scored: _m, ...shared } = EvalRequest.shape;

export const TrainingRequest = z.strictObject({
  kind: z.literal("training"),
  ...shared,
  trainer: TrainerTarget.prefault({}),
  max_steps: Step.max(1_000_000),
  group_size: z.int().min(1).max(LIMITS.trainingGroup).default(8).describe("rollouts of one task"),
  min_group_size: z
    .int()
    .min(1)
    .optional()
    .describe("a group with fewer scored rollouts is dropped; default 2, or group_size if less"),
  batch_size: BatchSize.default({ rollouts: 128 }).describe("rollouts, or tokens, that one step takes"),
  advantage: Advantage.prefault({ name: "mean" }),
  length_penalty: LengthPenalty.nullable().default(null),
  filters: z
    .strictObject({
      zero_variance: z
        .enum(["drop", "refill", "keep"])
        .default("drop")
        .describe(
          "groups whose rewards are all equal: drop = they count but train nothing; refill = others take their place; keep = shipped with advantage 0",
        ),
    })
    .prefault({}),
  curriculum: Curriculum.prefault({ name: "cycle" }),
  lead: z.int().min(0).max(100).default(1).describe("batches that may be shipped ahead of the published version"),
  max_off_policy_steps: z
    .int()
    .min(0)
    .max(1000)
    .default(8)
    .describe("versions between the weights that sampled and the weights that train: above it a group is dropped"),
  holdout: z
    .int()
    .min(0)
    .max(LIMITS.holdoutTasks)
    .default(0)
    .describe(
      "tasks never trained on: the first that an eval asks which has the run's environment, rows, seed and order",
    ),
  eval: z
    .strictObject({
      every: Step.describe("steps between evals"),
      environment: z
        .string()
        .min(1)
        .optional()
        .describe("default: the run's own, which plays the run's rows in the run's order"),
      environment_args: z.record(z.string(), z.unknown()).optional(),
      num_examples: z.int().min(1).max(10_000).default(200),
      rollouts_per_example: z.int().min(1).max(LIMITS.groupSize).default(1),
      at_start: z.boolean().default(true),
    })
    .optional(),
});
export type TrainingRequest = z.output<typeof TrainingRequest>;
export type TrainingRequestInput = z.input<typeof TrainingRequest>;
