/** A run's scores and judges, compared with the values that people gave. */
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import type { ReviewValue } from "../../src/contract/row-review.ts";
import { ComparedValues } from "../../src/reviews/compare-values.ts";

const score = (value: number, given: number | null, name = "correct"): ReviewValue => ({
  ...{ of: "score", name, value, given },
});

function compared(reviews: readonly (readonly [string, ReviewValue])[]) {
  const values = new ComparedValues();
  for (const [rollout, value] of reviews) values.add(rollout, [value]);
  return values.result().items;
}

test("the value that most reviewers of a rollout gave counts, and a tie leaves the rollout out", () => {
  const [item] = compared([
    ["a", score(1, 1)],
    ["a", score(1, 1)],
    ["a", score(0, 1)],
    ["b", score(0, 0)],
    ["c", score(0, 1)],
    ["c", score(1, 1)],
  ]);
  expect(item).toMatchObject({ n: 2, agreement: 1, kappa: 1, undecided: 1 });
  // Of four pairs of reviewers one agrees: both 1 for a.
  expect(item?.people).toEqual({ pairs: 4, agreement: 0.25 });
});

test("a rollout without a value of its own counts among people only", () => {
  const [item] = compared([
    ["a", score(1, null)],
    ["a", score(1, null)],
  ]);
  expect(item).toMatchObject({ n: 0, agreement: null, reason: "too_few", people: { pairs: 1, agreement: 1 } });
});

test("the score that disagrees most comes first, then those without κ", () => {
  const values = new ComparedValues();
  values.announce("reward", "reward");
  for (const [at, given] of [0, 1, 0, 1].entries()) {
    values.add(`ro_${at}`, [score(given, given, "good"), score(1 - given, given, "bad")]);
  }
  expect(values.result().items.map(({ name, kappa }) => [name, kappa])).toEqual([
    ["bad", -1],
    ["good", 1],
    ["reward", null],
  ]);
});

test("rollouts that differ are listed by the size of the difference, and only the first ones", () => {
  const many = Array.from({ length: 30 }, (_, at): [string, ReviewValue] => [`ro_${at}`, score(at / 30, 0)]);
  const [item] = compared(many);
  expect(item?.disagreements).toHaveLength(LIMITS.disagreementsShown);
  expect(item?.disagreements[0]).toEqual({ rollout_id: "ro_29", given: 0, people: 29 / 30 });
});

test("a judge and a score with the same name are two", () => {
  const values = new ComparedValues();
  values.add("a", [score(1, 1, "default"), { of: "judge", name: "default", value: "right", given: "wrong" }]);
  expect(values.result().items.map(({ of }) => of)).toEqual(["score", "judge"]);
});

test("any number of names is bounded: 200 scores and judges are compared, and the others counted", () => {
  const values = new ComparedValues();
  for (let at = 0; at < 250; at += 1) values.add("a", [score(1, 1, `score ${at}`)]);
  const { items, items_left_out } = values.result();
  expect([items.length, items_left_out]).toEqual([200, 50]);
});
