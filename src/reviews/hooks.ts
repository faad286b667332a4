/** What the kernel reads of reviews: for filters over rollouts, and for rows of results and exports. */
import type { RowReview } from "../contract/row-review.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { ReviewHooks } from "../kernel/kit/review-hooks.ts";
import { listReviewMarks, reviewSizes, reviewsOfRollouts, rowReviewOf } from "./queries.ts";

export const reviewHooks: ReviewHooks = {
  marksOf: (env, scope, runId) => listReviewMarks(databaseOf(env), scope, runId),
  async reviewsOf(env, scope, lines, most) {
    const summed = await reviewSizes(databaseOf(env), scope, lines.flat());
    const sizes = new Map(summed.map(({ rollout_id, characters }) => [rollout_id, characters]));
    const fitting = linesThatFit(lines, sizes, most);
    const reviewed = lines.slice(0, fitting).flatMap((ids) => ids.filter((id) => sizes.has(id)));
    const rows = reviewed.length === 0 ? [] : await reviewsOfRollouts(databaseOf(env), scope, reviewed);
    const reviews = new Map<string, RowReview[]>();
    for (const row of rows) {
      const known = reviews.get(row.rollout_id);
      if (known === undefined) reviews.set(row.rollout_id, [rowReviewOf(row)]);
      else known.push(rowReviewOf(row));
    }
    return { lines: fitting, reviews };
  },
};

function linesThatFit(lines: Parameters<ReviewHooks["reviewsOf"]>[2], sizes: Map<string, number>, most: number) {
  let left = most;
  const over = lines.findIndex((ids) => {
    for (const id of ids) left -= sizes.get(id) ?? 0;
    return left < 0;
  });
  return over === -1 ? lines.length : Math.max(1, over);
}
