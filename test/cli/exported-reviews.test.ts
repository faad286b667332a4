/** Reviews in the rows of an export. */
import { expect, test } from "vitest";
import { withReviews } from "../../src/cli/export/reviews.ts";

const review = {
  ...{ created_by: "key_1", mark: "good" as const, note: null, values: [], why: null },
  ...{ created_at: 1, updated_at: 1 },
};

async function* rowsOf(...rows: readonly object[]): AsyncGenerator<object> {
  yield* rows;
}

test("a row has the reviews of its rollout, a pair those of both, and a row without reviews stays as it is", async () => {
  const reviews = new Map([["ro_1", [review]]]);
  const rows = rowsOf(
    { rollout_id: "ro_1", reward: 1 },
    { rollout_id: "ro_2", reward: 0 },
    { chosen_rollout_id: "ro_1", rejected_rollout_id: "ro_2" },
  );
  const written: object[] = [];
  for await (const row of withReviews(rows, reviews)) written.push(row);
  expect(written).toEqual([
    { rollout_id: "ro_1", reward: 1, reviews: [review] },
    { rollout_id: "ro_2", reward: 0 },
    { chosen_rollout_id: "ro_1", rejected_rollout_id: "ro_2", chosen_reviews: [review] },
  ]);
});
