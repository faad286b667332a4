/** Metrics and bookkeeping: the numbers of result files. */
import * as z from "zod";
import { environmentLabel, remainingInputs } from "../../../src/contract/output-rows.ts";
import { averageMetrics, averageReward, contextTokens, passTables } from "../../../src/core/verifiers/metadata.ts";
import { type Drivers, driver } from "../driver.ts";

const Reward = z.number().nullable();
const Metrics = z.record(z.string(), z.unknown()).nullable();
const UsagePair = z.tuple([z.number(), z.number()]).nullable();

export const NUMBERS: Drivers = {
  pass_at_k: driver(
    z.object({
      rollouts_per_example: z.int(),
      threshold: z.number(),
      rewards_of_example_0: z.array(Reward),
    }),
    ({ rollouts_per_example, threshold, rewards_of_example_0 }) =>
      passTables(
        rewards_of_example_0.map((reward) => ({ example_id: 0, reward })),
        { attempts: rollouts_per_example, threshold },
      ),
  ),
  avg_metrics: driver(z.array(z.object({ metrics: Metrics.optional() })), (rows) =>
    averageMetrics(rows.map(({ metrics = null }) => ({ metrics }))),
  ),
  avg_reward: driver(z.array(z.object({ reward: Reward.optional() })), (rows) =>
    averageReward(rows.map(({ reward }) => (reward === undefined ? {} : { reward }))),
  ),
  filter_inputs: driver(
    z.object({
      input_ids: z.array(z.int()),
      output_ids: z.array(z.int()),
      rollouts_per_example: z.int(),
    }),
    ({ input_ids, output_ids, rollouts_per_example }) => remainingInputs(input_ids, output_ids, rollouts_per_example),
  ),
  output_env_id: driver(z.looseObject({}), (row) => environmentLabel(row)),
  context_tokens: driver(z.object({ usage_per_step: z.array(UsagePair) }), ({ usage_per_step }) =>
    contextTokens(usage_per_step.map((usage) => usage && { prompt_tokens: usage[0], completion_tokens: usage[1] })),
  ),
};
