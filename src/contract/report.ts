/** The report of a run on the wire: how its rewards and metrics came out, and what they rest on. */
import * as z from "zod";
import { JudgeUsage } from "./judgement.ts";
import { Usage } from "./messages.ts";
import { Count, CountsByName, Interval, MaybeNumber, named } from "./primitives.ts";

const Estimate = z.object({
  mean: MaybeNumber.describe("mean of task means; null when nothing was scored"),
  se: MaybeNumber.describe("standard error over task means; null below two tasks"),
  n: Count.describe("scored rollouts"),
});
const ByK = z
  .record(z.string(), MaybeNumber)
  .describe("by k = 1, 2, 4, …, and all attempts; null where no task has k scored ones");

const Reward = z.object({
  mean: MaybeNumber.meta({ example: 1 }),
  se: MaybeNumber,
  ci95: Interval.describe("Student t over task means, not clipped to the range of scores"),
  wilson95: Interval.optional()
    .describe("Wilson's, where every reward is 0 or 1 and no task has two of them; else null")
    .meta({ example: null }),
  range: Interval.optional()
    .describe(
      "the least and the greatest reward that was scored: ci95 may reach beyond them, and beyond what a reward can be",
    )
    .meta({ example: [1, 1] }),
  n_tasks: Count.meta({ example: 1 }),
  n_rollouts: Count.meta({ example: 1 }),
  n_unscored: Count,
  n_error: Count.meta({ example: 1 }),
  n_truncated: Count,
});
const Metrics = z.record(z.string(), Estimate);

/** Of a kill, a timeout, a connection that broke, a reply without usage. */
export const LostUsage = z.object({
  calls: Count,
  micros: Count.nullable().describe("the most that they can have cost; null in a run without a cap"),
});
export type LostUsage = z.infer<typeof LostUsage>;

export const RunReport = named("RunReport", {
  reward: Reward,
  metrics: Metrics.describe("of all tasks; of a group of environments also apart, in members").meta({
    example: { answer_length: { mean: 25, n: 1 } },
  }),
  members: z
    .record(z.string(), z.object({ reward: Reward, metrics: Metrics }))
    .optional()
    .describe(
      "of a group of environments: the same by member; names of nested groups are joined by /. A rollout that could not be started, or never reported, is in none",
    ),
  pass_at_k: ByK.meta({ example: { "1": 1, "2": null, "4": null } }),
  pass_hat_k: ByK.meta({ example: { "1": 1, "2": null, "4": null } }),
  pass_k: z
    .record(
      z.string(),
      z.object({
        n_tasks: Count.describe("with at least k scored attempts"),
        n_too_few: Count.describe("with fewer: left out"),
        at_se: MaybeNumber,
        hat_se: MaybeNumber,
      }),
    )
    .optional()
    .describe("what stands behind pass_at_k and pass_hat_k, by k")
    .meta({ example: { "1": { n_tasks: 1 }, "2": { n_too_few: 1 }, "4": { n_too_few: 1 } } }),
  stop_conditions: CountsByName.meta({ example: { max_turns_reached: 1 } }),
  turns: Count.describe("of finished rollouts").meta({ example: 1 }),
  usage: z.object({
    ...Usage.shape,
    cost_micros: Count.nullable()
      .optional()
      .describe(
        "micro-dollars of these tokens, by the prices of their endpoint; null where it has none, or a reply came without usage",
      ),
    charged_micros: Count.optional().describe("what the platform charges for the rollouts, as it stands in the ledger"),
    judge: JudgeUsage.optional().describe("of the rubric's judges, apart; absent when none was asked"),
    lost: LostUsage.optional().describe("calls of which nobody knows what they took; absent where there were none"),
  }),
  counted_micros: Count.optional().describe(
    "what counts against max_cost_micros so far: of rollouts that have ended, and of lost calls what they can have taken at most; absent without a cap",
  ),
  lost_holds: z
    .object({
      calls: Count.meta({ example: 2 }),
      micros: Count.meta({ example: 1480 }),
      released: z
        .object({ calls: Count, micros: Count })
        .optional()
        .describe("what an owner released of such holds: it counts no more; absent where nothing was"),
    })
    .optional()
    .describe(
      "of counted_micros, what is held for lost calls of rollouts and judges that have ended, in micro-dollars; absent without a cap",
    ),
  latency: z
    .object({ platform_ms: z.object({ p50: MaybeNumber, p99: MaybeNumber }) })
    .optional()
    .describe(
      "milliseconds that the platform adds to a turn: what the step of its answered call took beside the model, without hooks of the environment and without waits for permits. Each is the upper bound of a histogram's bucket, at most 42 % above what was measured; 16,384 stands for all that is longer. Absent before the first rollout has answered",
    )
    .meta({ example: { platform_ms: { p50: 5.66, p99: 22.63 } } }),
  calls: Count.describe(
    "calls sent to the model; once all rollouts have ended, calls − turns is what retries and restarts cost",
  ).meta({
    example: 2,
  }),
});
export type RunReport = z.infer<typeof RunReport>;
