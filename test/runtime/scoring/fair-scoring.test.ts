/** Scores that take long let other organisations go on. */
import { expect, test } from "vitest";
import { openPlatform } from "../platform.ts";
import { RIGHT } from "../rows.ts";
import { questionScript, script } from "../script.ts";

/** Texts of this length take some 1,000,000 steps to compare, and six graders compare them. */
const LONG = 14_000;
const ROWS = 16;
const GRADERS = Array.from({ length: 6 }, (_, at) => ({ type: "scorer", name: `g${at}`, scorer: "levenshtein" }));

test("a run of another organisation is played, scored and read while heavy graders are computed", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const heavy = await greedy.start({
    environment: "graded-dataset",
    environment_args: { graders: GRADERS },
    dataset: Array.from({ length: ROWS }, (_, at) => ({
      question: questionScript([`${at}${"x".repeat(LONG)}`]),
      answer: "y".repeat(LONG),
    })),
    model: script([]),
  });
  const scored = async () => (await greedy.run(heavy.id)).counts.scored;
  // Its first unit is scored: from now on the others are computed one after another.
  await expect.poll(scored).toBeGreaterThan(0);
  const dataset = [{ question: "What is 2 + 2?", answer: "#### 4" }];
  const run = await fair.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  expect(run.counts.scored).toBe(1);
  expect(await scored()).toBeLessThan(ROWS);
  expect((await greedy.ended(heavy.id)).counts.scored).toBe(ROWS);
});
