/** The results of the runs of one environment in a project, for each model. */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { AnyObject, BuiltEnvironment, Count, MaybeNumber, MaybeText, named, RunId, Seconds } from "./primitives.ts";
import { RunReport } from "./report.ts";
import { RUN_STATUSES } from "./run.ts";

const Ends = {
  planned: Count.meta({ example: 400 }),
  scored: Count.meta({ example: 388 }),
  unscored: Count.meta({ example: 2 }),
  failed: Count.meta({ example: 8 }),
  cancelled: Count.meta({ example: 2 }),
};

const EvalOfModel = z.object({
  id: RunId,
  name: MaybeText,
  status: z.enum(RUN_STATUSES).meta({ example: "completed" }),
  mean: MaybeNumber.describe("mean reward; null if nothing was scored").meta({ example: 0.62 }),
  created_at: Seconds,
});

const JudgeOfResults = z.object({ model: z.string(), sampling: AnyObject });

const ModelResults = z.object({
  version: z.string().meta({ example: "1.0.1" }),
  digest: BuiltEnvironment.shape.digest.describe("of the environment's code, which may change within a version"),
  model: z.string().meta({ example: "qwen3-4b" }),
  weights_of: MaybeText.describe("the training run whose weights a fleet served; null for the model itself"),
  environment_args: AnyObject.nullable().describe(
    `null if they have more than ${LIMITS.resultArgsCharacters} characters as JSON: each of these evals has a row of its own`,
  ),
  judges: z
    .record(z.string(), JudgeOfResults)
    .nullable()
    .describe(
      `by name. Their endpoints do not matter: an inline one has a new id in each run. Null if they have more than ${LIMITS.resultArgsCharacters} characters as JSON: each of these evals has a row of its own`,
    ),
  dataset: MaybeText.describe("id of the uploaded dataset, if any"),
  inline: z.boolean().describe("true if the rows came in the requests: then they may differ between evals"),
  evals: Count.describe("how many evals the row has").meta({ example: 2 }),
  unfinished: Count.describe("how many of them have not ended"),
  rollouts: z.object(Ends).describe("sums over all evals of the row"),
  measured: z
    .object({ id: RunId, created_at: Seconds, reward: RunReport.shape.reward, rollouts: z.object(Ends) })
    .nullable()
    .describe(
      "the ended eval with the most scored tasks, and of several the newest. Evals are not pooled: they may have the same tasks, and then an interval over all of them would be too narrow. Null if no ended eval has a score",
    ),
  latest: z.array(EvalOfModel).describe(`its newest evals, at most ${LIMITS.resultEvalsListed}`),
});
export type ModelResults = z.infer<typeof ModelResults>;

export const EnvironmentResults = named("EnvironmentResults", {
  object: z.literal("environment_results"),
  id: z.string().meta({ example: "alice/guess-word" }),
  runs: Count.describe(`how many of the newest runs were read, at most ${LIMITS.resultRuns}`).meta({ example: 2 }),
  has_more: z.boolean().describe("true if there are older runs, which are not in the results"),
  left_out: z
    .object({ training: Count, forked: Count, rescored: Count })
    .describe("how many of these runs are in no row: rewards of their rollouts cannot be compared with those of evals"),
  rows: z
    .array(ModelResults)
    .describe(
      "one for each version, digest, model, weights, arguments, judges and dataset, those with the highest mean first",
    )
    .meta({ example: [{}] }),
});
export type EnvironmentResults = z.infer<typeof EnvironmentResults>;
