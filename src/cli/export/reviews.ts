/** Adds the reviews of people to rows of an export, by the rollouts that the rows are made of. */
import type { ReviewView, RollcallClient } from "../../sdk/client.ts";

const PAGE = 100;

/** A review as a row has it: without the ids that the row has itself. */
export type RowReview = Omit<ReviewView, "object" | "id" | "run_id" | "rollout_id">;

/** The reviews of a run by rollout, the oldest first; a run has at most 10,000. */
export async function readReviews(
  client: RollcallClient,
  runId: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly RowReview[]>> {
  const reviews = new Map<string, RowReview[]>();
  for await (const review of client.reviews.listOfRun(runId, { limit: PAGE, order: "asc" }, { signal })) {
    const { object: _, id: __, run_id: ___, rollout_id, ...rest } = review;
    reviews.set(rollout_id, [...(reviews.get(rollout_id) ?? []), rest]);
  }
  return reviews;
}

/** The names of the ids of rollouts in rows, and of the reviews that are added for each. */
const PLACES = [
  ["rollout_id", "reviews"],
  ["chosen_rollout_id", "chosen_reviews"],
  ["rejected_rollout_id", "rejected_reviews"],
] as const;

/** A row without reviews stays as it is. */
export async function* withReviews(
  rows: AsyncIterable<object>,
  reviews: ReadonlyMap<string, readonly RowReview[]>,
): AsyncGenerator<object> {
  for await (const row of rows) {
    const added = PLACES.flatMap(([id, name]) => {
      const found = reviews.get(String(Reflect.get(row, id)));
      return found === undefined ? [] : [[name, found] as const];
    });
    yield added.length === 0 ? row : { ...row, ...Object.fromEntries(added) };
  }
}
