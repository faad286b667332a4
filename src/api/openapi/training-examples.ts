/** The example of a training run, as it is created and as it is read. */
import type { CreatedRun, RunView } from "../../contract/run.ts";
import type { StepMetrics, TrainingView } from "../../contract/training-view.ts";
import { RUN } from "./examples.ts";

const AT = 1_792_000_300;
const CHILD_RUN = "run_01ks2h9zrd7mxw3f0tbn8vc5zb3k7p4mxq";

const TRAINING: TrainingView = {
  step: 43,
  max_steps: 200,
  steps_trained: 41,
  policy_version: 41,
  published: 41,
  applied: { min: 41, max: 41, by_replica: { policy: 41 } },
  lead: 1,
  target_lead: 1,
  max_lag: 2,
  max_off_policy_steps: 2,
  generation: 0,
  groups: { open: 12, buffered: 6, shipped: 672, dropped: { zero_variance: 41, stale: 3 } },
  buffered: { rollouts: 48, samples: 48, tokens: 9_120, bytes: 41_300 },
  batches: { shipped: 42, held: 0, ready: 0, leased: 1, acked: 41, dead: 0, voided: 0, empty: 0 },
  samples: { clean: 5_310, forked: 12, realigned: 0, untrainable: { no_tokens: 1 } },
  trainer: {
    ...{ id: "t0", kind: "prime-rl", epoch: 1, delivery: "pull" },
    ...{ last_seen_at: AT, waiting_for_batch: 0.06, not_training: 0.3, waiting_by: "trainer" },
  },
  evals: [{ step: 40, run_id: CHILD_RUN, policy_version: 40 }],
  group_size: 8,
  min_group_size: 2,
  batch_size: { rollouts: 128 },
  advantage: { name: "mean" },
  length_penalty: null,
  curriculum: { name: "cycle" },
  holdout: 256,
};

export const TRAINING_RUN: RunView = {
  ...RUN,
  ...{ kind: "training", name: null, model: "qwen3-4b", training: TRAINING },
  environment: { id: "calculator", version: "1.0.0", digest: "sha256:9f86d081884c7d65" },
  ...{ rollouts_per_example: 8, min_scored: 0, metadata: {} },
};

export const CREATED_TRAINING_RUN: CreatedRun = {
  ...TRAINING_RUN,
  status: "queued",
  trainer: { token: "rct_4kq0w7m2h9e3x5c1v8b6n0t2", push_secret: null },
};

export const STEP_METRICS: StepMetrics = {
  step: 42,
  at: AT,
  values: {
    "train/agg/all/reward/mean": 0.71,
    "train/agg/effective/reward/mean": 0.58,
    "off_policy/max": 2,
    "trainer/loss": -0.013,
    "trainer/grad_norm": 0.42,
  },
};
