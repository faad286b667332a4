/** The example of a comparison on the OpenAPI page: six tasks, a rollout or more each. */
import type { RunComparison } from "../../contract/comparison.ts";
import { ROLLOUT, RUN } from "./examples.ts";

const reward = {
  ...{ se: 0.119023807, ci95: [0.27737, 0.88929], wilson95: null, range: [0, 1] },
  ...{ n_tasks: 6, n_rollouts: 24, n_unscored: 0, n_error: 0, n_truncated: 0 },
} satisfies Partial<RunComparison["run"]["reward"]>;
const side = {
  ...{ status: "completed", environment: "gsm8k@1.0.0", model: RUN.model },
  created_at: RUN.created_at,
} satisfies Partial<RunComparison["run"]>;

export const COMPARISON: RunComparison = {
  object: "comparison",
  metric: "reward",
  run: { id: RUN.id, ...side, mean: 0.583333, reward: { ...reward, mean: 0.583333 } },
  baseline: {
    ...{ id: "run_01ks2h9q4e7mxw3f0tbn8vc5zd4w8k2hjr", ...side, mean: 0.416667 },
    reward: { ...reward, mean: 0.416667, se: 0.083333, ci95: [0.20245, 0.63088] },
  },
  differs: ["sampling"],
  ...{ n_matched: 6, n_unmatched: 0, n_only_run: 0, n_only_baseline: 0 },
  difference: {
    mean: 0.166667,
    ...{ se: 0.105409, ci95: [-0.104296, 0.43763], t: 1.581139, df: 5, p: 0.174688 },
  },
  ...{ wins: 3, losses: 1, ties: 2, mcnemar_p: null, n_flipped: 1 },
  flipped: [
    {
      task_key: ROLLOUT.task_key ?? "",
      ...{ run: 0.25, baseline: 0.5, example_id: 0 },
      rollout_id: ROLLOUT.id,
      baseline_rollout_id: "ro_01ks2h9q4e7mxw3f0tbn8vc5zd_0_0_0_k7w3nb5s",
    },
  ],
  next: null,
};
