/** What people think of rollouts. The slice that has reviews registers these hooks (slice-hooks.ts). */
import type { Mark } from "../../contract/agreement.ts";
import type { RowReview } from "../../contract/row-review.ts";
import type { Scope } from "../../contract/scope.ts";

/** What a filter needs of one review. */
export interface ReviewMark {
  readonly rollout_id: string;
  readonly created_by: string;
  readonly mark: Mark | null;
}

export interface LineReviews {
  /** How many of the lines have their reviews here. Those of the next line do not fit. */
  readonly lines: number;
  /** By rollout, the oldest first. A rollout without reviews is not in it. */
  readonly reviews: ReadonlyMap<string, readonly RowReview[]>;
}

export interface ReviewHooks {
  /** Every review of the run: at most `LIMITS.reviewsPerRun`. */
  marksOf(env: Env, scope: Scope, runId: string): Promise<readonly ReviewMark[]>;
  /**
   * The reviews of the rollouts of the first lines, as many lines as have at most `most` characters of reviews
   * together, but at least one. A line has the ids of the rollouts that it is made of.
   */
  reviewsOf(env: Env, scope: Scope, lines: readonly (readonly string[])[], most: number): Promise<LineReviews>;
}

export const NO_REVIEWS: ReviewHooks = {
  marksOf: async () => [],
  reviewsOf: async (_env, _scope, { length }) => ({ lines: length, reviews: new Map() }),
};
