/** Two runs compared on the wire: paired by task, over the tasks that both have scored. */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import {
  Count,
  EXAMPLE,
  Interval,
  listOf,
  MaybeNumber,
  MaybeText,
  NonEmpty,
  named,
  RolloutId,
  RunId,
  Seconds,
  TaskKey,
  TaskText,
  wholeNumber,
} from "./primitives.ts";
import { RunReport } from "./report.ts";
import { RUN_STATUSES } from "./run.ts";

const Side = z.object({
  id: RunId,
  status: z.enum(RUN_STATUSES).meta({ example: "completed" }),
  environment: z.string().describe("id@version").meta({ example: "gsm8k@1.0.0" }),
  model: z.string().meta({ example: "qwen3-4b" }),
  created_at: Seconds,
  mean: MaybeNumber.describe("over the matched tasks").meta({ example: 0.583333 }),
  reward: RunReport.shape.reward.describe("of the whole run, with its counts").meta({
    example: {
      ...{ mean: 0.583333, se: 0.119023807, ci95: [0.27737, 0.88929], range: [0, 1] },
      ...{ n_tasks: 6, n_rollouts: 24, n_error: 0 },
    },
  }),
});

/** Which of the matched tasks are listed. */
export const COMPARED_TASKS = ["flipped", "different", "worse", "better", "all"] as const;

const ComparedTask = z
  .object({
    task_key: TaskKey,
    task_text: TaskText,
    run: z.number().describe("mean of the task's scored rollouts").meta({ example: 0.25 }),
    baseline: z.number().meta({ example: 0.5 }),
    example_id: Count.describe("in the run"),
    rollout_id: RolloutId.describe("its first scored rollout in the run"),
    baseline_rollout_id: z.string().meta({ example: "ro_01ks2h9q4e7mxw3f0tbn8vc5zd_0_0_0_k7w3nb5s" }),
  })
  .describe("a task that both have scored");
export type ComparedTask = z.infer<typeof ComparedTask>;

export const RunComparison = named("RunComparison", {
  object: z.literal("comparison"),
  metric: z.string().describe("`reward`, or the name of a score").meta({ example: "reward" }),
  run: Side,
  baseline: Side.meta({
    example: {
      ...{ id: EXAMPLE.baseline, mean: 0.416667 },
      reward: { mean: 0.416667, se: 0.083333, ci95: [0.20245, 0.63088] },
    },
  }),
  differs: z
    .array(z.string())
    .describe("other differences between the two runs")
    .meta({ example: ["sampling"] }),
  n_matched: Count.describe("tasks with a scored rollout in both").meta({ example: 6 }),
  n_unmatched: Count.describe("tasks with a scored rollout in only one run; left out"),
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
    .describe("run − baseline, over the differences of matched tasks")
    .meta({
      example: { mean: 0.166667, se: 0.105409, ci95: [-0.104296, 0.43763], t: 1.581139, df: 5, p: 0.174688 },
    }),
  detectable: z
    .object({
      alpha: z.number().describe("of the two-sided test").meta({ example: 0.05 }),
      power: z.number().describe("probability of detecting a difference of this size").meta({ example: 0.8 }),
      effect: MaybeNumber.describe(
        "minimum detectable effect: the smallest true difference that n_matched tasks would detect, given the variance of their differences; null without variance",
      ).meta({ example: 0.295316 }),
      more_tasks: Count.nullable()
        .describe(
          "additional tasks needed to detect a true difference of difference.mean; 0 if ci95 excludes 0, null without a difference or variance",
        )
        .meta({ example: 13 }),
    })
    .optional()
    .describe("statistical power of these tasks; absent from older platforms"),
  wins: Count.describe("tasks where the run is better").meta({ example: 3 }),
  losses: Count.meta({ example: 1 }),
  ties: Count.meta({ example: 2 }),
  mcnemar_p: MaybeNumber.describe("exact, two-sided; null unless every matched mean is 0 or 1"),
  n_flipped: Count.describe("tasks that pass on one side only; a task passes from 0.5").meta({
    example: 1,
  }),
  tasks: z
    .array(ComparedTask)
    .describe("one page of the requested tasks, by task_key")
    .meta({ example: [{}] }),
  next: MaybeText.describe("`after` of the next page of `tasks`; null on the last"),
});
export type RunComparison = z.infer<typeof RunComparison>;

export const CompareQuery = z.strictObject({
  baseline: NonEmpty.describe("id of the run to compare with").meta({ example: EXAMPLE.baseline }),
  metric: NonEmpty.default("reward").describe("`reward`, or the name of a score both runs have"),
  after: z
    .string()
    .regex(/^[0-9a-f]{1,64}$/, { error: "is not the next of an earlier page" })
    .optional()
    .describe("`next` of the previous page of tasks")
    .meta({ example: EXAMPLE.task }),
  tasks: z
    .enum(COMPARED_TASKS)
    .default("flipped")
    .describe("which matched tasks are listed: different, worse and better by their means in the two runs"),
  limit: wholeNumber(1, LIMITS.comparedPerPage).default(20),
});
export type CompareQuery = z.infer<typeof CompareQuery>;

const TaskSide = z.object({
  mean: z.number().describe("of the task's scored rollouts").meta({ example: 0.5 }),
  rollout_id: RolloutId.describe("its first scored rollout"),
});

export const TaskComparison = named("TaskComparison", {
  task_key: TaskKey,
  task_text: TaskText,
  example_id: Count.describe("in the run"),
  run: TaskSide.meta({ example: { mean: 0.25 } }),
  baselines: z
    .array(TaskSide.nullable())
    .describe("in the order of the request; null if the baseline has no scored rollout of the task")
    .meta({ example: [{ mean: 0.5 }, null] }),
});
export type TaskComparison = z.infer<typeof TaskComparison>;
export const TaskComparisonList = listOf(TaskComparison, "TaskComparisonList", EXAMPLE.task);
export type TaskComparisonList = z.infer<typeof TaskComparisonList>;

/** Far more characters than the ids of `LIMITS.comparedBaselines` runs have. */
const BASELINES_CHARACTERS = 1000;

const Baselines = z
  .string()
  .max(BASELINES_CHARACTERS)
  .refine((text) => !text.split(",").includes(""), { error: "must be ids of runs, separated by single commas" })
  .refine((text) => new Set(text.split(",")).size === text.split(",").length, { error: "names a run twice" })
  .refine((text) => text.split(",").length <= LIMITS.comparedBaselines, {
    error: `must be at most ${LIMITS.comparedBaselines} runs`,
  });

export const CompareTasksQuery = z.strictObject({
  ...CompareQuery.omit({ baseline: true }).shape,
  baselines: Baselines.describe(
    `ids of 1 to ${LIMITS.comparedBaselines} runs to compare with, separated by commas`,
  ).meta({ example: EXAMPLE.baseline }),
  after: CompareQuery.shape.after.describe("`last_id` of the previous page"),
  tasks: CompareQuery.shape.tasks.describe("which tasks are listed: those that differ so from at least one baseline"),
});
export type CompareTasksQuery = z.infer<typeof CompareTasksQuery>;
