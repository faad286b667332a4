/** How far the scores and judges of a run agree with the people who reviewed its rollouts. */
import * as z from "zod";
import { LIMITS } from "./limits.ts";
import { Count, EXAMPLE, Interval, listOf, MaybeNumber, named, RunId, Share } from "./primitives.ts";

export const MARKS = ["good", "bad", "unsure"] as const;
export type Mark = (typeof MARKS)[number];

export const REVIEWED_KINDS = ["reward", "score", "judge"] as const;
export type ReviewedKind = (typeof REVIEWED_KINDS)[number];

export const ReviewedName = {
  of: z.enum(REVIEWED_KINDS).describe("the reward, a score by its name, or a judge by its name in `judges`"),
  name: z.string().describe("`reward` for the reward").meta({ example: "correct_answer" }),
};

/** A score, or the judgement of a judge: a label or a number. */
export const Rating = z.union([z.number(), z.string()]).meta({ example: 1 });

const ItemsLeftOut = Count.optional().describe("scores and judges beyond 200 that are not compared; absent for none");

const Disagreement = z.object({
  rollout_id: z.string().meta({ example: EXAMPLE.rollout }),
  given: Rating.describe("the rollout's own"),
  people: Rating.describe("what most of its reviewers gave").meta({ example: 0 }),
});

export const AgreementItem = named("AgreementItem", {
  ...ReviewedName,
  n: Count.describe("rollouts with both: a value of their own, and one that most of their reviewers gave").meta({
    example: 12,
  }),
  agreement: Share.nullable()
    .describe("the share of these rollouts on which both are the same; null without any")
    .meta({ example: 0.75 }),
  weights: z
    .enum(["none", "quadratic"])
    .describe("quadratic if all values are numbers: two values disagree by the square of their difference"),
  kappa: MaybeNumber.describe("Cohen's κ; null: see `reason`").meta({ example: 0.5 }),
  ci95: Interval.describe(
    "of κ, for many rollouts; null without κ, if all rollouts agree, and if either side gave only one value: the formula then gives no width",
  ).meta({
    example: [0.02, 0.98],
  }),
  reason: z
    .enum(["too_few", "one_value", "too_large"])
    .nullable()
    .describe(
      "why κ is null: fewer than two rollouts have both; both gave one and the same value everywhere; the values are too large to compute with",
    )
    .meta({ example: null }),
  undecided: Count.describe("rollouts left out, because two values have as many reviewers each"),
  people: z
    .object({ pairs: Count, agreement: Share.nullable().meta({ example: null }) })
    .describe("pairs of reviewers of one rollout who both gave a value, and the share of pairs with the same one"),
  disagreements: z
    .array(Disagreement)
    .describe(`the first ${LIMITS.disagreementsShown} rollouts that differ, by the size of the difference`)
    .meta({ example: [{}] }),
});
export type AgreementItem = z.infer<typeof AgreementItem>;

export const RunAgreement = named("RunAgreement", {
  object: z.literal("agreement"),
  run_id: RunId,
  reviews: Count.meta({ example: 13 }),
  rollouts: Count.describe("with at least one review").meta({ example: 12 }),
  marks: z.object({ good: Count, bad: Count, unsure: Count }).describe("reviews by their mark"),
  items: z
    .array(AgreementItem)
    .describe("for the reward, each score and each judge: those with the lowest κ first, then those without κ")
    .meta({ example: [{}] }),
  items_left_out: ItemsLeftOut,
});
export type RunAgreement = z.infer<typeof RunAgreement>;

const ITEM = AgreementItem.omit({ people: true, disagreements: true, weights: true });

/** The agreement of one of several runs, without details. */
export const AgreementSummary = named("AgreementSummary", {
  object: z.literal("agreement_summary"),
  run_id: RunId,
  reviews: Count.meta({ example: 13 }),
  items: z
    .array(ITEM)
    .nullable()
    .describe(
      `for each score and judge that has a value of people: those with the lowest κ first, then those without κ; null if the reviews of this run and of the runs before it are more than ${LIMITS.reviewsPerRun}: read it in another request`,
    )
    .meta({ example: [{}] }),
  items_left_out: ItemsLeftOut,
});
export type AgreementSummary = z.infer<typeof AgreementSummary>;
export const AgreementSummaryList = listOf(AgreementSummary, "AgreementSummaryList", EXAMPLE.run);
export type AgreementSummaryList = z.infer<typeof AgreementSummaryList>;

export const AgreementQuery = z.strictObject({
  runs: z
    .string()
    .transform((text) => text.split(","))
    .pipe(
      z
        .array(z.string().regex(/^run_[0-9a-z]{1,100}$/, { error: "must be ids of runs, separated by commas" }))
        .max(LIMITS.agreementRuns, { error: `must name at most ${LIMITS.agreementRuns} runs` }),
    )
    .describe(`ids of runs, separated by commas; at most ${LIMITS.agreementRuns}`)
    .meta({ example: EXAMPLE.run }),
});
export type AgreementQuery = z.output<typeof AgreementQuery>;
