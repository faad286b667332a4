import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";

const task = {
  question: "What are the roots of x^2 = 2?",
  answer: "Thus $x = \\boxed{\\pm\\sqrt{2}}$.",
};

async function rewardFor(reply: string, args: Record<string, unknown> = {}, row: object = task) {
  const environment = await loadEnvironment.load(args);
  return runRollout(environment, { task: { ...row }, model: scripted([reply]) });
}

test.each([
  "\\boxed{\\pm\\sqrt{2}}",
  "They are $x=\\sqrt2$ and its opposite: \\boxed{\\sqrt 2, -\\sqrt 2}",
  "\\boxed{x = -2^{1/2} \\text{ or } x = 2^{1/2}}",
  "<think>\\boxed{0}</think>\\boxed{\\left\\{\\sqrt{2}, -\\sqrt{2}\\right\\}}",
  "#### \\pm \\sqrt{2}",
])("%j is right", async (reply) => {
  expect(await rewardFor(reply)).toMatchObject({
    reward: 1,
    metrics: { correct_answer: 1, answer_length: reply.length },
  });
});

test.each(["\\boxed{\\sqrt{2}}", "\\boxed{\\pm 1.41421356}", "\\boxed{\\pm 2}", "I do not know", ""])(
  "%j is wrong, or no answer",
  async (reply) => {
    expect((await rewardFor(reply)).reward).toBe(0);
  },
);

test("the columns are arguments, and an answer may be a number", async () => {
  const args = { question_column: "problem", answer_column: "solution" };
  const row = { problem: "What is 1 + 1/2?", solution: 1.5, level: 3 };
  const environment = await loadEnvironment.load(args);
  const report = await runRollout(environment, {
    task: row,
    model: ({ messages }) => {
      expect(messages.at(-1)).toEqual({ role: "user", content: row.problem });
      return "\\boxed{\\frac{3}{2}}";
    },
  });
  expect(report.reward).toBe(1);
});

test("a row without the configured columns is refused with the column's name", async () => {
  await expect(rewardFor("\\boxed{1}", {}, { problem: "?", answer: "1" })).rejects.toThrow("question is required");
});

test("strictness and percentages are arguments", async () => {
  const row = { question: "How much is 5% of 1?", answer: "0.05" };
  expect((await rewardFor("It is 0.05.", {}, row)).reward).toBe(1);
  expect((await rewardFor("It is 0.05.", { strict: true }, row)).reward).toBe(0);
  expect((await rewardFor("\\boxed{5\\%}", {}, row)).reward).toBe(0);
  expect((await rewardFor("\\boxed{5\\%}", { percent_is_ratio: true }, row)).reward).toBe(1);
});

test("a row with a malformed answer is not a failure of the model", async () => {
  const report = await rewardFor("\\boxed{1}", {}, { question: "?", answer: "\\frac{1}{2" });
  expect(report).toMatchObject({ reward: null, error: null });
});

test("a row whose answer is not mathematics is compared as text", async () => {
  const row = { question: "?", answer: "see page 7, ibid.)" };
  expect((await rewardFor("\\boxed{1}", {}, row)).reward).toBe(0);
  expect((await rewardFor("\\boxed{see page 7, ibid.)}", {}, row)).reward).toBe(1);
});

test("a restart after every step changes nothing", async () => {
  const environment = await loadEnvironment();
  const [straight, restarted] = await Promise.all(
    [false, true].map((restartAfterEachTurn) =>
      runRollout(environment, { task, model: scripted([task.answer]), restartAfterEachTurn }),
    ),
  );
  expect(restarted).toEqual(straight);
  expect(straight?.reward).toBe(1);
});

test("an unknown argument is refused", async () => {
  await expect(loadEnvironment.load({ column: "x" })).rejects.toBeInstanceOf(z.ZodError);
});
