/** The reviews on a page of rows, and where the page must end so that they fit into it. */
import { LIMITS } from "../../contract/limits.ts";
import type { RowReviews } from "../../contract/row-review.ts";
import type { Scope } from "../../contract/scope.ts";
import { reviews } from "../kit/slice-hooks.ts";

/** The reviews of a rollout by its id; undefined if it has none. */
export type ReviewsOf = (rolloutId: string) => RowReviews | undefined;

/** `lines`: of how many lines, given by the ids of their rollouts, the reviews fit: at least one. */
export async function reviewsOfPage(
  env: Env,
  scope: Scope,
  lines: readonly (readonly string[])[],
): Promise<{ readonly lines: number; readonly reviewsOf: ReviewsOf }> {
  if (lines.length === 0) return { lines: 0, reviewsOf: () => undefined };
  const read = await reviews().reviewsOf(env, scope, lines, LIMITS.pageReviewCharacters);
  return { lines: read.lines, reviewsOf: (id) => read.reviews.get(id)?.slice() };
}
