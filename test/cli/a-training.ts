/** A training run as the API returns it, and the numbers of its steps, for tests of the output. */
import type { RunView } from "../../src/contract/run.ts";
import type { StepMetrics, TrainingView } from "../../src/contract/training-view.ts";
import { aRun } from "./a-run.ts";

export function aTraining(more: Partial<TrainingView> = {}): TrainingView {
  const nothing = { rollouts: 0, samples: 0, tokens: 0, bytes: 0 };
  return {
    ...{ step: 14, max_steps: 40, steps_trained: 12, policy_version: 11, published: 12 },
    ...{ applied: { min: 11, max: 11, by_replica: { policy: 11 } }, lead: 1, target_lead: 1 },
    ...{ max_lag: 2, max_off_policy_steps: 8, generation: 0 },
    groups: { open: 8, buffered: 3, shipped: 104, dropped: { zero_variance: 9 } },
    buffered: nothing,
    batches: {
      ...{ shipped: 13, held: 0, ready: 1, leased: 0, acked: 12, dead: 0, voided: 0, empty: 0 },
    },
    samples: { clean: 900, forked: 2, realigned: 0, untrainable: { no_tokens: 1 } },
    trainer: {
      ...{ id: "t", kind: "reference", epoch: 1, delivery: "pull", last_seen_at: 1_795_258_340 },
      waiting_for_batch: 0.042,
      not_training: 0.31,
      waiting_by: "trainer",
    },
    evals: [],
    ...{ group_size: 8, min_group_size: 2, batch_size: { rollouts: 64 }, holdout: 256 },
    ...{ advantage: { name: "mean" }, length_penalty: null, curriculum: { name: "cycle" } },
    ...more,
  };
}

export function aTrainingRun(more: Partial<RunView> = {}): RunView {
  const counts = { planned: 900, pending: 4, dispatched: 896, in_flight: 60, scored: 830 };
  const outcomes = { unscored: {}, failed: { provider: 1 }, cancelled: { stale: 5 } };
  return aRun({ ...counts, ...outcomes }, { kind: "training", training: aTraining(), ...more });
}

/** Twelve steps, each with a slightly higher reward than the one before, except the last. */
export const STEPS: readonly StepMetrics[] = Array.from({ length: 12 }, (_, at) => ({
  step: at + 1,
  at: 1_795_258_330 + at,
  values: {
    "train/agg/all/reward/mean": at === 11 ? 0.5 : 0.3 + 0.04 * at,
    "off_policy/mean": 1.25,
    "off_policy/max": 2,
    "trainer/ratio_max_abs_error": at === 0 ? 3e-7 : 0.2,
    "trainer/kl": at === 0 ? 1e-8 : 0.01,
  },
}));
