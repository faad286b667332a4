/** The state of a training run, as the API returns it. Steps count from 1, policy versions from 0. */
import * as z from "zod";
import {
  Applied,
  Count,
  CountsByName,
  MaybeNumber,
  MaybeText,
  named,
  Seconds,
  Share,
  Step,
  Version,
} from "./primitives.ts";
import {
  Advantage,
  BatchSize,
  Curriculum,
  InitialWeights,
  LengthPenalty,
  LossAggregation,
  SampleFilter,
} from "./training-request.ts";

export const TrainingView = named("Training", {
  step: Step.describe("step of the batch being collected; max_steps + 1 once all are built").meta({ example: 43 }),
  max_steps: Count.meta({ example: 200 }),
  steps_trained: Count.describe("batches acknowledged by the trainer").meta({ example: 41 }),
  policy_version: Version.describe("version that samples new groups").meta({ example: 41 }),
  published: Version.meta({ example: 41 }),
  applied: Applied.meta({ example: { min: 41, max: 41, by_replica: { policy: 41 } } }),
  lead: z.int().describe("batches shipped but not yet in published weights").meta({ example: 1 }),
  target_lead: Count.meta({ example: 1 }),
  max_lag: Count.describe("largest off-policy lag of a shipped rollout, in versions").meta({ example: 2 }),
  max_off_policy_steps: Count.meta({ example: 2 }),
  generation: Count.describe("number of resets"),
  groups: z
    .object({
      ...{ open: Count, buffered: Count, shipped: Count },
      dropped: CountsByName.describe("zero_variance, too_few, untrainable, filtered, stale, version_reset, unused"),
    })
    .meta({ example: { open: 12, buffered: 6, shipped: 672, dropped: { zero_variance: 41, stale: 3 } } }),
  buffered: z
    .object({ rollouts: Count, samples: Count, tokens: Count, bytes: Count })
    .meta({ example: { rollouts: 48, samples: 48, tokens: 9_120, bytes: 41_300 } }),
  batches: z
    .object({
      ...{ shipped: Count, held: Count, ready: Count, leased: Count, acked: Count, dead: Count, voided: Count },
      empty: Count.describe("consecutive batches with nothing to train on"),
    })
    .meta({ example: { shipped: 42, leased: 1, acked: 41 } }),
  samples: z
    .object({
      ...{ clean: Count, forked: Count, realigned: Count },
      untrainable: CountsByName.describe("scored rollouts without rows, by cause"),
      flagged: CountsByName.optional().describe("scored rollouts in which a filter found something, by filter"),
      filtered: CountsByName.optional().describe(
        "those of them that are not trained on, by the filter that left them out",
      ),
      prompts: CountsByName.exactOptional().describe(
        "with prompts token_ids or chat_token_ids: later turns whose prompts were sent as token ids (token_ids), and as messages by cause",
      ),
    })
    .describe("rows built: the first of a rollout, a new one, one partly overwritten")
    .meta({ example: { clean: 5_310, forked: 12, untrainable: { no_tokens: 1 } } }),
  trainer: z
    .object({
      id: z.string(),
      kind: z.string(),
      epoch: Count,
      delivery: z.enum(["pull", "push", "both"]),
      last_seen_at: Seconds.nullable(),
      waiting_for_batch: Share.nullable().describe(
        "share of the time from its first lease to its last acknowledgement in which it waited for a batch: wait_s of its acknowledgements, or else the time from a lease request without a batch to the lease",
      ),
      not_training: Share.nullable().describe(
        "1 - train_s of its acknowledgements / that time; null if none has train_s",
      ),
      waiting_by: z
        .enum(["trainer", "platform", "both"])
        .nullable()
        .describe("whose clock measured waiting_for_batch; both if only some acknowledgements have wait_s"),
    })
    .nullable()
    .describe("null until one has registered")
    .meta({
      example: {
        ...{ id: "t0", kind: "prime-rl", epoch: 1, last_seen_at: 1_792_000_300 },
        ...{ waiting_for_batch: 0.06, not_training: 0.3, waiting_by: "trainer" },
      },
    }),
  evals: z
    .array(z.object({ name: z.string(), step: Count, run_id: z.string(), policy_version: Version }))
    .describe("evals that were started; `name` as in the series: eval/{name}/reward")
    .meta({
      example: [{ name: "gsm8k", step: 40, run_id: "run_01ks2h9zrd7mxw3f0tbn8vc5zb3k7p4mxq", policy_version: 40 }],
    }),
  group_size: Count.meta({ example: 8 }),
  min_group_size: Count.meta({ example: 2 }),
  batch_size: BatchSize.meta({ example: { rollouts: 128 } }),
  advantage: Advantage,
  length_penalty: LengthPenalty.nullable(),
  members: z
    .array(
      z.object({
        name: z.string(),
        ratio: z.number().nullable().describe("null if groups are opened in the order of the rows"),
        group_size: Count,
        min_group_size: Count,
        advantage: Advantage,
        groups_opened: Count.nullable().describe("null if groups are opened in the order of the rows"),
      }),
    )
    .optional()
    .describe("the members of a group of environments, if the request has settings of any"),
  reference: z
    .object({ model: z.string(), kl_weight: z.number() })
    .optional()
    .describe("the model of ref_logprobs, if the run has one"),
  sample_filters: z.array(SampleFilter).optional().describe("filters of single rollouts, if the run has any"),
  loss_aggregation: LossAggregation.optional().describe("token if absent"),
  curriculum: Curriculum,
  holdout: Count.meta({ example: 256 }),
  initial_weights: InitialWeights.optional().describe("location of version 0, if the run sets it"),
});
export type TrainingView = z.infer<typeof TrainingView>;

/** One step of the series; metrics that were not measured are absent. */
export const StepMetrics = z.object({
  step: Count.meta({ example: 42 }),
  at: Seconds.meta({ example: 1_792_000_300 }),
  values: z.record(z.string(), MaybeNumber).meta({
    example: {
      "train/agg/all/reward/mean": 0.71,
      "train/agg/effective/reward/mean": 0.58,
      "off_policy/max": 2,
      "trainer/loss": -0.013,
      "trainer/grad_norm": 0.42,
    },
  }),
});
export type StepMetrics = z.infer<typeof StepMetrics>;

/** Shown once, in the reply that creates the run or rotates the token. */
export const TrainerSecrets = named("TrainerSecrets", {
  token: z
    .string()
    .describe("what the trainer authenticates with; shown once")
    .meta({ example: "rct_Zt9cQm4uB7yLw1sHd8fNa3eRg6iTo5jVbXzEkP2vJx0" }),
  push_secret: MaybeText.describe("whsec_…: signs the offers of push; shown once"),
});
export type TrainerSecrets = z.infer<typeof TrainerSecrets>;
