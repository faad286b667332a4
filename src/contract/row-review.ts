/** Reviews of rollouts by people, in the rows of results and exports. */
import * as z from "zod";
import { MARKS, Rating, ReviewedName } from "./agreement.ts";
import { EXAMPLE, MaybeText, named, Seconds } from "./primitives.ts";

/** One value that a person gave. */
export const ReviewValue = z.object({
  ...ReviewedName,
  value: Rating.describe("what the person gave").meta({ example: 0 }),
  given: Rating.nullable().describe("the rollout's own; null if it has none"),
});
export type ReviewValue = z.infer<typeof ReviewValue>;

/** A review without the ids of its rollout and run, which the row has. */
export const RowReview = named("RowReview", {
  created_by: z.string().describe("a key or a person").meta({ example: EXAMPLE.key }),
  mark: z.enum(MARKS).nullable().describe("the rollout as a whole").meta({ example: "bad" }),
  note: MaybeText.meta({ example: "The result is right, but the unit is missing." }),
  values: z
    .array(ReviewValue)
    .describe("the values of the reward, of scores and of judges that the person gave")
    .meta({ example: [{}] }),
  why: MaybeText.meta({ example: "7 is not 7 apples" }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type RowReview = z.infer<typeof RowReview>;

/** All reviews of one rollout. */
export const RowReviews = z.array(RowReview).describe("what people think of the rollout, the oldest first");
export type RowReviews = z.infer<typeof RowReviews>;
