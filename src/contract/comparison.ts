/** Two runs compared on the wire: paired by task, over the tasks that both have scored. */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { Count, Interval, MaybeNumber, Seconds, wholeNumber } from "./primitives.ts";
import { RunReport } from "./report.ts";
import { RUN_STATUSES } from "./run.ts";

const Side = z.object({
  id: z.string(),
  status: z.enum(RUN_STATUSES),
  environment: z.string().describe("id@version"),
  model: z.string(),
  created_at: Seconds,
  mean: MaybeNumber.describe("over the matched tasks"),
  reward: RunReport.shape.reward.describe("of the whole run, with its counts"),
});

const FlippedTask = z
  .object({
    task_key: z.string(),
    run: z.number().describe("mean of the task's scored rollouts"),
    baseline: z.number(),
    example_id: Count.describe("in the run"),
    rollout_id: z.string().describe("its first scored rollout in the run"),
    baseline_rollout_id: z.string(),
  })
  .describe("a task that passes on one side and not on the other: from 0.5 on it passes");
export type FlippedTask = z.infer<typeof FlippedTask>;

export const RunComparison = z
  .object({
    object: z.literal("comparison"),
    metric: z.string().describe("`reward`, or the name of a score"),
    run: Side,
    baseline: Side,
    differs: z.array(z.string()).describe("what else is not the same in the two runs"),
    n_matched: Count.describe("tasks with a scored rollout in both"),
    n_unmatched: Count.describe("tasks with one in only one of them: left out"),
    n_only_run: Count,
    n_only_baseline: Count,
    difference: z
      .object({
        mean: z.number(),
        se: MaybeNumber,
        ci95: Interval.describe("Student t, n_matched − 1 degrees of freedom"),
        t: MaybeNumber,
        df: MaybeNumber,
        p: MaybeNumber.describe("two-sided; null where se is null or 0"),
      })
      .describe("run − baseline, over the differences of matched tasks"),
    wins: Count.describe("tasks the run does better"),
    losses: Count,
    ties: Count,
    mcnemar_p: MaybeNumber.describe("exact, two-sided; null unless every matched mean is 0 or 1"),
    n_flipped: Count,
    flipped: z.array(FlippedTask).describe("one page, by task_key"),
    next: z.string().nullable().describe("`after` of the next page of `flipped`; null on the last"),
  })
  .meta({ id: "RunComparison" });
export type RunComparison = z.infer<typeof RunComparison>;

export const CompareQuery = z.strictObject({
  baseline: z
    .string()
    .min(1)
    .describe("id of the run to compare with")
    .meta({ example: "run_01ks2h9q4e7mxw3f0tbn8vc5zd4w8k2hjr" }),
  metric: z.string().min(1).default("reward").describe("`reward`, or the name of a score both runs have"),
  after: z
    .string()
    .regex(/^[0-9a-f]{1,64}$/, { error: "is not from a page before" })
    .optional()
    .describe("`next` of the page of flipped tasks before")
    .meta({ example: "2c26b46b68ffc68ff99b453c1d304134" }),
  limit: wholeNumber(1, LIMITS.flippedPerPage).default(20),
});
export type CompareQuery = z.infer<typeof CompareQuery>;
