/** Reviews of rollouts by people: a mark, a note, and the scores that a person would have given. */
import * as z from "zod";
import { MARKS } from "../contract/agreement.ts";
import { JudgeName } from "../contract/judgement.ts";
import { LIMITS } from "../contract/limits.ts";
import { EXAMPLE, listOf, named, namedInput, RolloutId, RunId } from "../contract/primitives.ts";
import { RowReview } from "../contract/row-review.ts";
import { ShownText } from "../contract/shown-text.ts";

/** Larger numbers have no use as a score, and their squares would not be exact. */
const SCORE_LIMIT = 1e9;

const Text = z
  .string()
  .min(1)
  .max(LIMITS.reviewNoteCharacters)
  .refine((text) => text.isWellFormed(), { error: "must not contain unpaired surrogates" });
const GivenScore = z.number().min(-SCORE_LIMIT).max(SCORE_LIMIT);
const GivenVerdict = z.union([GivenScore, ShownText.min(1).max(LIMITS.reviewLabelCharacters)]);
const Name = ShownText.min(1).max(LIMITS.nameCharacters);

function atMost(names: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(names).length <= LIMITS.reviewValues;
}
const TOO_MANY = { error: `must have at most ${LIMITS.reviewValues} names` };

const Fields = {
  mark: z.enum(MARKS).nullable().default(null).describe("the rollout as a whole").meta({ example: "bad" }),
  note: Text.nullable().default(null).meta({ example: "The result is right, but the unit is missing." }),
  reward: GivenScore.nullable().default(null).describe("the reward that it should have").meta({ example: null }),
  scores: z
    .record(Name, GivenScore)
    .refine(atMost, TOO_MANY)
    .default({})
    .describe("by name of a score of the rollout: the score that it should have")
    .meta({ example: { correct_answer: 0 } }),
  judges: z
    .record(JudgeName.min(1).max(LIMITS.nameCharacters), GivenVerdict)
    .refine(atMost, TOO_MANY)
    .default({})
    .describe("by name of a judge that judged the rollout: the label or number that it should have given")
    .meta({ example: {} }),
  why: Text.nullable()
    .default(null)
    .describe("required if a value differs from the rollout's own")
    .meta({ example: "7 is not 7 apples" }),
};

export const ReviewRequest = namedInput("ReviewRequest", Fields);
export type ReviewRequest = z.output<typeof ReviewRequest>;
export type ReviewRequestInput = z.input<typeof ReviewRequest>;

export const ReviewView = named("Review", {
  object: z.literal("review"),
  id: z.string().meta({ example: EXAMPLE.review }),
  run_id: RunId,
  rollout_id: RolloutId,
  ...RowReview.shape,
});
export type ReviewView = z.infer<typeof ReviewView>;
export const ReviewList = listOf(ReviewView, "ReviewList", EXAMPLE.review);
