/** The report of a run on the wire: the distribution of its rewards and metrics, and the numbers behind it. */
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
  .describe("by k = 1, 2, 4, …, and all attempts; null if no task has k scored ones");

const Reward = z.object({
  mean: MaybeNumber.meta({ example: 1 }),
  se: MaybeNumber,
  ci95: Interval.describe("Student t over task means, not clipped to the range of scores"),
  wilson95: Interval.optional()
    .describe("Wilson interval, if every reward is 0 or 1 and each task has one; else null")
    .meta({ example: null }),
  range: Interval.optional()
    .describe("the lowest and highest reward; ci95 may extend beyond them, and beyond the range of rewards")
    .meta({ example: [1, 1] }),
  n_tasks: Count.meta({ example: 1 }),
  n_rollouts: Count.meta({ example: 1 }),
  n_unscored: Count,
  n_error: Count.meta({ example: 1 }),
  n_truncated: Count,
});
const Metrics = z.record(z.string(), Estimate);

/** Calls without usage after a kill, a timeout, a broken connection, or a reply without usage. */
export const LostUsage = z.object({
  calls: Count,
  micros: Count.nullable().describe("the most that they can have cost; null for a run without a cap"),
});
export type LostUsage = z.infer<typeof LostUsage>;

/** Turns that were answered from the project's cache. */
export const ReusedUsage = z.object({ turns: Count, tokens: Count.describe("of prompts and answers") });
export type ReusedUsage = z.infer<typeof ReusedUsage>;

export const RunReport = named("RunReport", {
  reward: Reward,
  metrics: Metrics.describe("of all tasks; for a group of environments also per member, in members").meta({
    example: { answer_length: { mean: 25, n: 1 } },
  }),
  members: z
    .record(z.string(), z.object({ reward: Reward, metrics: Metrics }))
    .optional()
    .describe(
      "for a group of environments: the same per member; names of nested groups are joined by /. Rollouts that were never started, or never reported, are in none",
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
    .describe("number of tasks behind pass_at_k and pass_hat_k, by k")
    .meta({ example: { "1": { n_tasks: 1 }, "2": { n_too_few: 1 }, "4": { n_too_few: 1 } } }),
  stop_conditions: CountsByName.meta({ example: { max_turns_reached: 1 } }),
  turns: Count.describe("of finished rollouts").meta({ example: 1 }),
  usage: z.object({
    ...Usage.shape,
    cost_micros: Count.nullable()
      .optional()
      .describe(
        "micro-dollars of these tokens, by the prices of their endpoint; null without prices, or if a reply had no usage",
      ),
    charged_micros: Count.optional().describe("what the platform charges for the rollouts, as in the ledger"),
    judge: JudgeUsage.optional().describe(
      "separately, of the rubric's judges and a training's reference; absent if none was called",
    ),
    reused: ReusedUsage.optional().describe(
      "turns whose answers came from the project's cache (answer_cache): their tokens are in no other figure and cost nothing; absent if none",
    ),
    lost: LostUsage.optional().describe("calls with unknown usage; absent if none"),
  }),
  counted_micros: Count.optional().describe(
    "what counts against max_cost_micros so far: ended rollouts, and the most that lost calls can have cost; absent without a cap",
  ),
  lost_reservations: z
    .object({
      calls: Count.meta({ example: 2 }),
      micros: Count.meta({ example: 1480 }),
      released: z
        .object({ calls: Count, micros: Count })
        .optional()
        .describe("what an owner released of these reservations, so that it no longer counts; absent if nothing"),
    })
    .optional()
    .describe(
      "part of counted_micros that is reserved for lost calls of ended rollouts and judges; absent without a cap",
    ),
  latency: z
    .object({ platform_ms: z.object({ p50: MaybeNumber, p99: MaybeNumber }) })
    .optional()
    .describe(
      "milliseconds that the platform adds to a turn: the time of the answered call's step without the model, environment hooks and waits for leases. Each value is the upper bound of a histogram bucket, at most 42 % above the measured time; 16,384 means that or longer. Absent before the first rollout has answered",
    )
    .meta({ example: { platform_ms: { p50: 5.66, p99: 22.63 } } }),
  calls: Count.describe(
    "calls sent to the model; once all rollouts have ended, calls − turns are retries and restarts, if no turn came from the cache",
  ).meta({
    example: 2,
  }),
});
export type RunReport = z.infer<typeof RunReport>;
