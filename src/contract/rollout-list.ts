/** Lists over a run's rollouts on the wire: the rollouts themselves, their groups, and the distribution of a number. */
import * as z from "zod";
import { LISTED_STATUSES, parseFilter, parseMeasure, parseSort, TEXT_SEARCHES } from "./filter.ts";
import { Cost } from "./judgement.ts";
import { LIMITS } from "./limits.ts";
import {
  Count,
  EXAMPLE,
  Flag,
  MaybeNumber,
  MaybeText,
  named,
  RolloutId,
  RunId,
  Seconds,
  Step,
  TaskKey,
  TaskText,
  Version,
  wholeNumber,
} from "./primitives.ts";
import { OUTCOMES } from "./run.ts";

/** The filter in a query: its text, after it was parsed successfully. */
export const FilterText = z
  .string()
  .superRefine((text, context) => {
    const parsed = parseFilter(text);
    if (!parsed.ok) context.addIssue({ code: "custom", message: parsed.error.message });
  })
  .describe(
    `which rollouts, as in \`reward<0.5 error:provider "timeout"\`: docs/filter.md. A text is searched in ${TEXT_SEARCHES}`,
  )
  .meta({ example: "reward<0.5 stop:max_turns_reached" });

const SortText = z
  .string()
  .refine((text) => parseSort(text) !== null, {
    error:
      "must be dispatched, started, ended, reward, turns, calls, tokens, duration, group or the name of a score, with - before it for the largest first",
  })
  .describe("sort key; a leading `-` sorts the largest first; rows without the value always come last")
  .meta({ example: "-reward" });

/** Where a page begins: `last_id` of the previous page. Opaque to clients. */
const Cursor = z.string().regex(/^[\w-]{1,1200}$/, { error: "is not the last_id of a page" });

export const RolloutQuery = z.strictObject({
  filter: FilterText.optional(),
  sort: SortText.default("dispatched"),
  after: Cursor.optional().describe("`last_id` of the previous page"),
  limit: wholeNumber(1, LIMITS.rolloutsPerPage).default(100),
  matched: Flag.describe("count all that match"),
});
export type RolloutQuery = z.infer<typeof RolloutQuery>;

const ScoreShown = z.object({ name: z.string(), score: MaybeNumber, weight: z.number() });

/** One rollout of a list, in flight or ended, with what its run stores of it. */
export const RolloutSummary = named("RolloutSummary", {
  object: z.literal("rollout_summary"),
  id: RolloutId,
  run_id: RunId,
  group: Count,
  slot: Count,
  attempt: Count,
  superseded_by: MaybeText.describe("the later attempt that replaces it"),
  status: z
    .enum(LISTED_STATUSES)
    .describe("scoring: it has answered and waits for its scores")
    .meta({ example: "done" }),
  cancelling: z.boolean().describe("it has not ended, but it or its run was cancelled"),
  outcome: z.enum(OUTCOMES).nullable().meta({ example: "scored" }),
  reason: MaybeText.describe("the error class, cause or reason of the outcome"),
  task_key: MaybeText.meta({ example: EXAMPLE.task }),
  task_text: TaskText,
  example_id: Count.nullable(),
  member: MaybeText.describe("the member that played it, for a group of environments"),
  reward: MaybeNumber.meta({ example: 1 }),
  advantage: MaybeNumber.describe("as in the rollout").meta({ example: 0.5 }),
  scores: z
    .array(ScoreShown)
    .describe("the first 20")
    .meta({ example: [{ name: "correct_answer", score: 1, weight: 1 }] }),
  scores_left_out: Count,
  stop_condition: MaybeText.meta({ example: "max_turns_reached" }),
  is_truncated: z.boolean(),
  turns: Count.nullable().describe("null while it runs: read the rollout itself").meta({ example: 1 }),
  calls: Count.nullable().meta({ example: 1 }),
  prompt_tokens: Count.nullable().meta({ example: 92 }),
  completion_tokens: Count.nullable().meta({ example: 61 }),
  started_at: Seconds.nullable().meta({ example: 1_792_000_001 }),
  ended_at: Seconds.nullable().meta({ example: 1_792_000_002 }),
  duration: z.number().nullable().describe("seconds, from its start to its end").meta({ example: 0.84 }),
  error: z
    .object({
      error: z.string(),
      message: z.string().describe("the first line of the error message, cut at 200 characters"),
    })
    .nullable(),
  cost: Cost,
  step: Step.nullable().describe("training runs: step of the batch that its group was shipped in"),
  has_judgements: z.boolean(),
});
export type RolloutSummary = z.infer<typeof RolloutSummary>;

const Searched = z
  .object({ rollouts: Count, of: Count })
  .nullable()
  .describe(
    'for a filter with a "text": number of ended rollouts whose first prompt is indexed so far; each request indexes more. null if no text is searched',
  );

/** `first_id` and `last_id` are cursors. */
export const RolloutSummaryList = named("RolloutSummaryList", {
  object: z.literal("list"),
  data: z.array(RolloutSummary).meta({ example: [{}] }),
  first_id: MaybeText.describe("a cursor").meta({ example: "WyJyZXdhcmQiLDAuNSw0MV0" }),
  last_id: MaybeText.describe("a cursor: `after` of the next page").meta({ example: "WyJyZXdhcmQiLDAuNSw0MV0" }),
  has_more: z.boolean(),
  matched: Count.nullable().describe("number of matches, if requested"),
  searched: Searched,
});
export type RolloutSummaryList = z.infer<typeof RolloutSummaryList>;

export const GROUP_SORTS = ["group", "reward", "reward_sd", "turns", "tokens"] as const;
export type GroupSort = (typeof GROUP_SORTS)[number];

export const GroupQuery = z.strictObject({
  filter: FilterText.optional().describe("groups with a member that passes this filter"),
  sort: z
    .string()
    .refine((text) => GROUP_SORTS.some((one) => one === text.replace(/^-/, "")), {
      error: `must be ${GROUP_SORTS.join(", ")}, with - before it for the largest first`,
    })
    .default("group")
    .describe("sort key; a leading `-` sorts the largest first; rows without the value always come last"),
  after: Cursor.optional().describe("`last_id` of the previous page"),
  limit: wholeNumber(1, LIMITS.groupsPerPage).default(50),
});
export type GroupQuery = z.infer<typeof GroupQuery>;

/** A group's numbers, over the attempts that count. */
export const GroupSummary = named("GroupSummary", {
  object: z.literal("group_summary"),
  run_id: RunId,
  group: Count,
  example_id: Count.nullable(),
  task_key: TaskKey.nullable(),
  task_text: TaskText,
  member: MaybeText,
  counts: z
    .object({
      dispatched: Count.meta({ example: 4 }),
      in_flight: Count,
      scored: Count.meta({ example: 4 }),
      unscored: Count,
      failed: Count,
      cancelled: Count,
      superseded: Count.describe("attempts replaced by a later one; not in any other number here"),
    })
    .describe("of its members: those that count"),
  reward: z
    .object({
      mean: MaybeNumber.meta({ example: 0.5 }),
      min: MaybeNumber.meta({ example: 0 }),
      max: MaybeNumber.meta({ example: 1 }),
      sd: MaybeNumber.describe("of the scored members, divided by n - 1; null for fewer than two").meta({
        example: 0.577,
      }),
    })
    .describe("over its scored members"),
  zero_variance: z.boolean().describe("two or more are scored, all with the same reward"),
  mean_turns: MaybeNumber.describe("over its ended members").meta({ example: 1 }),
  mean_tokens: MaybeNumber.meta({ example: 153 }),
  training: z
    .object({
      state: z.enum(["open", "buffered", "shipped", "dropped"]).describe("complete and waiting for a batch: buffered"),
      reason: MaybeText.describe("why it was dropped"),
      step: Step.nullable().describe("the step it was shipped for"),
      dispatch_version: Version.describe("version of the weights at dispatch"),
      max_version: Version.nullable().describe("newest version of the weights that sampled it"),
    })
    .nullable()
    .describe("of a training run"),
});
export type GroupSummary = z.infer<typeof GroupSummary>;

export const GroupSummaryList = named("GroupSummaryList", {
  object: z.literal("list"),
  data: z.array(GroupSummary).meta({ example: [{}] }),
  first_id: MaybeText.describe("a cursor").meta({ example: "WyJncm91cCIsNDFd" }),
  last_id: MaybeText.describe("a cursor: `after` of the next page").meta({ example: "WyJncm91cCIsNDFd" }),
  has_more: z.boolean(),
  searched: Searched,
});
export type GroupSummaryList = z.infer<typeof GroupSummaryList>;

/** One group with its numbers and every attempt of every slot. */
export const GroupView = GroupSummary.extend({
  object: z.literal("group"),
  batch: z
    .object({
      id: z.string(),
      step: Step,
      state: z.string().meta({ example: "acked" }),
      groups: Count,
      rollouts: Count,
    })
    .nullable()
    .describe("training runs: the batch it was shipped in"),
  members_left_out: Count.describe("attempts beyond the first 1,024"),
  members: z
    .array(RolloutSummary)
    .describe("by slot, then attempt")
    .meta({ example: [{}] }),
}).meta({ id: "GroupView" });
export type GroupView = z.infer<typeof GroupView>;

export const HISTOGRAM_FIELDS = ["reward", "turns", "calls", "tokens", "duration"] as const;
export type HistogramField = (typeof HISTOGRAM_FIELDS)[number];

export const HistogramQuery = z.strictObject({
  of: z
    .string()
    .refine((text) => parseMeasure(text, HISTOGRAM_FIELDS) !== null, {
      error: `must be ${HISTOGRAM_FIELDS.join(", ")} or the name of a score`,
    })
    .default("reward")
    .describe("a numeric field of the rollouts, or the name of a score")
    .meta({ example: "reward" }),
  bins: wholeNumber(1, LIMITS.histogramBins).default(20),
  filter: FilterText.optional(),
  by: z.enum(["step"]).optional().describe("`step`: training runs only, the same bins for each shipped step"),
  after_step: wholeNumber(0)
    .optional()
    .describe("steps after this one; default: the latest that fit")
    .meta({ example: 40 }),
});
export type HistogramQuery = z.infer<typeof HistogramQuery>;

/** The distribution of a measure, over the attempts that count and match the filter. */
export const Histogram = named("Histogram", {
  object: z.literal("histogram"),
  of: z.string().meta({ example: "reward" }),
  bins: z
    .array(
      z.object({
        from: z.number(),
        to: z.number().describe("belongs to the next bin, except in the last"),
        n: Count,
      }),
    )
    .describe("of equal width, from the smallest to the largest value; empty if there are no values")
    .meta({ example: [{ from: 0, to: 1, n: 4 }] }),
  whole: z.boolean().describe("all values are whole numbers: a bin holds those from its `from` to its `to` - 1"),
  counts: z
    .object({
      values: Count.describe("in the bins").meta({ example: 4 }),
      null: Count.describe("ended without the value, but did not fail"),
      failed: Count.describe("failed, without the value"),
      in_flight: Count,
    })
    .describe("every rollout that passes the filter is in one of these"),
  by_step: z
    .array(z.object({ step: Step, bins: z.array(Count), null: Count, failed: Count }))
    .nullable()
    .describe("in order of steps, at most 500; null if not requested"),
  steps_before: Count.describe("shipped steps before the first of by_step"),
  searched: Searched,
});
export type Histogram = z.infer<typeof Histogram>;
