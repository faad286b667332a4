/** Scores that take long let other organisations go on. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { openPlatform } from "../platform.ts";
import { RIGHT } from "../rows.ts";
import { questionScript, script } from "../script.ts";

/** Texts of this length take some 1,000,000 steps to compare, and six graders compare them. */
const LONG = 14_000;
const ROWS = 16;
/** Each of these is computed twice. */
const JUDGED = 8;
const HEAVY_ROWS = Array.from({ length: ROWS }, (_, at) => ({
  question: questionScript([`${at}${"x".repeat(LONG)}`]),
  answer: "y".repeat(LONG),
}));
const GRADERS = Array.from({ length: 6 }, (_, at) => ({ type: "scorer", name: `g${at}`, scorer: "levenshtein" }));

test("a run of another organisation is played, scored and read while heavy graders are computed", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const heavy = await greedy.start({
    environment: "graded-dataset",
    environment_args: { graders: GRADERS },
    dataset: HEAVY_ROWS,
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

test("a run of another organisation is played, scored and read while units with judges and heavy graders are computed", async () => {
  const [greedy, fair] = await Promise.all([openPlatform(), openPlatform()]);
  const JUDGE = {
    ...{ type: "score_model", name: "taste", model: "judge", range: [0, 1] },
    input: [{ role: "user", content: "Grade {{ item.answer }}" }],
  };
  const judge = { endpoint: { base_url: env.MODEL_URL }, model: script(['{"reason": "fine", "verdict": 0.5}']) };
  const heavy = await greedy.start({
    environment: "graded-dataset",
    environment_args: { graders: [...GRADERS.slice(0, 3), JUDGE] },
    dataset: HEAVY_ROWS.slice(0, JUDGED),
    model: script([]),
    judges: { judge },
  });
  const scored = async () => (await greedy.run(heavy.id)).counts.scored;
  await expect.poll(scored).toBeGreaterThan(0);
  const dataset = [{ question: "What is 2 + 2?", answer: "#### 4" }];
  const run = await fair.finish({ environment: "gsm8k", dataset, model: script(RIGHT) });
  expect(run.counts.scored).toBe(1);
  expect(await scored()).toBeLessThan(JUDGED);
  expect((await greedy.ended(heavy.id)).counts.scored).toBe(JUDGED);
});
