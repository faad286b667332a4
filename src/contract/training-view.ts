/** How a training run stands, as it is read back. Steps count from 1, policy versions from 0. */
import * as z from "zod";
import { Count, CountsByName, MaybeNumber, Positive, Seconds, Share } from "./primitives.ts";
import { Advantage, BatchSize, Curriculum, LengthPenalty } from "./training-request.ts";

export const TrainingView = z
  .object({
    step: Positive.describe("of the batch that is collected now; max_steps + 1 once all are cut"),
    max_steps: Count,
    steps_trained: Count.describe("batches acknowledged by the trainer"),
    policy_version: Count.describe("that new groups are sampled by"),
    published: Count,
    applied: z.object({ min: Count, max: Count, by_replica: CountsByName }),
    lead: z.int().describe("batches shipped and not yet turned into published weights"),
    target_lead: Count,
    max_lag: Count.describe("largest off-policy lag of a rollout that was shipped, in versions"),
    max_off_policy_steps: Count,
    generation: Count.describe("resets it has lived through"),
    groups: z.object({
      open: Count,
      buffered: Count,
      shipped: Count,
      dropped: z
        .record(z.string(), Count)
        .describe("zero_variance, too_few, untrainable, stale, version_reset, unused"),
    }),
    buffered: z.object({ rollouts: Count, samples: Count, tokens: Count, bytes: Count }),
    batches: z.object({
      shipped: Count,
      held: Count,
      ready: Count,
      leased: Count,
      acked: Count,
      dead: Count,
      voided: Count,
      empty: Count.describe("cut with nothing left to train, in a row"),
    }),
    samples: z
      .object({
        clean: Count,
        forked: Count,
        realigned: Count,
        untrainable: CountsByName.describe("scored rollouts without rows, by cause"),
      })
      .describe("rows made: the first of a rollout, one begun anew, one partly overwritten"),
    trainer: z
      .object({
        id: z.string(),
        kind: z.string(),
        epoch: Count,
        delivery: z.enum(["pull", "push", "both"]),
        last_seen_at: Seconds.nullable(),
        waiting_for_batch: Share.nullable().describe(
          "of the time from its first lease to its last acknowledgement, in which it waited because no batch was there for it: wait_s of its acknowledgements; of steps without, from the request for a lease that found none to the lease",
        ),
        not_training: Share.nullable().describe(
          "1 - train_s of its acknowledgements / that time; null where none carries train_s",
        ),
        waiting_by: z
          .enum(["trainer", "platform", "both"])
          .nullable()
          .describe("whose clock waiting_for_batch was read from: both where some acknowledgements carry wait_s"),
      })
      .nullable()
      .describe("null until one has registered"),
    evals: z.array(z.object({ step: Count, run_id: z.string(), policy_version: Count })),
    group_size: Count,
    min_group_size: Count,
    batch_size: BatchSize,
    advantage: Advantage,
    length_penalty: LengthPenalty.nullable(),
    curriculum: Curriculum,
    holdout: Count,
  })
  .meta({ id: "Training" });
export type TrainingView = z.infer<typeof TrainingView>;

/** One step of the series; a name that was not measured is absent. */
export const StepMetrics = z.object({
  step: Count,
  at: Seconds,
  values: z.record(z.string(), MaybeNumber),
});
export type StepMetrics = z.infer<typeof StepMetrics>;

/** Shown once, in the reply that creates the run or rotates the token. */
export const TrainerSecrets = z
  .object({
    token: z.string().describe("what the trainer authenticates with; shown once"),
    push_secret: z.string().nullable().describe("whsec_…: signs the offers of push; shown once"),
  })
  .meta({ id: "TrainerSecrets" });
export type TrainerSecrets = z.infer<typeof TrainerSecrets>;
