import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { loadEnvironment } from "./environment.ts";

const listed = {
  question: "Which one floats?",
  options: [" wood ", "iron", "stone"],
  answer: "A",
  category: "physics",
};
const separate = {
  question: "Which one floats?",
  ...{ correct: "dry  wood [title]x", incorrect_1: "iron", incorrect_2: "stone", incorrect_3: "lead" },
};

async function play(row: object, reply: string, args: Record<string, unknown> = {}) {
  const environment = await loadEnvironment.load(args);
  let asked: readonly { role: string; content?: unknown }[] = [];
  const model = ({ messages }: { messages: readonly { role: string; content?: unknown }[] }) => {
    asked = messages;
    return reply;
  };
  const { reward, metrics } = await runRollout(environment, { task: row, model });
  return { reward, metrics, asked: asked.map(({ content }) => content) };
}

test("the prompt of MMLU-Pro lists the options by letters", async () => {
  const { asked } = await play(listed, "The answer is (A).");
  expect(asked).toEqual([
    expect.stringContaining('finish your answer with "the answer is (X)"'),
    "Question:\nWhich one floats?\nOptions:\nA. wood\nB. iron\nC. stone\nAnswer: Let's think step by step.",
  ]);
});

test("the prompt of GPQA cleans its options, and shuffles them by the seed", async () => {
  const orders = await Promise.all(
    [null, 0, 0, 1, 2, 3].map(async (shuffle_seed) => {
      const { asked } = await play(separate, "?", { style: "gpqa", shuffle_seed });
      return String(asked[1]);
    }),
  );
  expect(orders[0]).toBe(
    "What is the correct answer to this question:Which one floats?\nChoices:\n" +
      "(A) dry wood. x\n(B) iron\n(C) stone\n(D) lead\nLet's think step by step: ",
  );
  expect(orders[1]).toBe(orders[2]);
  expect(new Set(orders).size).toBeGreaterThan(3);
  const usual = await play(separate, "?", { style: "gpqa" });
  expect(usual.asked[1]).toBe(orders[1]);
});

test("the right option stays right in every order", async () => {
  for (let shuffle_seed = 0; shuffle_seed < 8; shuffle_seed += 1) {
    const args = { style: "gpqa", shuffle_seed };
    const { asked } = await play(separate, "?", args);
    const [, letter] = /\((\w)\) dry wood/.exec(String(asked[1])) ?? [];
    expect((await play(separate, `The answer is (${letter}).`, args)).reward).toBe(1);
  }
});

test.each([
  ["mmlu_pro", "So the answer is (A).", 1, 1],
  ["mmlu_pro", "So the answer is (B).", 0, 0],
  ["mmlu_pro", "Answer: A", 1, 0],
  ["mmlu_pro", "First: the answer is (B). No: the answer is (A).", 1, 0],
  ["mmlu_pro", "<think>The answer is (B).</think>The answer is (A).", 1, 1],
  ["mmlu_pro", "I do not know.", 0, 0],
  ["gpqa", "(B) sinks. The answer is (A).", 1, 1],
  ["gpqa", "It must be wood!", 0, 1],
  ["gpqa", "Answer: A", 1, 1],
  ["gpqa", "", 0, 0],
])("%s: %j scores %d, and %d by the reference", async (style, reply, reward, reference_match) => {
  const played = await play(listed, reply, { style, shuffle_seed: null });
  expect(played).toMatchObject({ reward, metrics: { correct_answer: reward, reference_match } });
});

test.each([
  ["iron, then wood, then iron", ["wood", "iron", "stone"], "B"],
  ["ironwood", ["iron", "ironwood", "wood"], "B"],
  ["an ironwoo", ["iron", "ironwood", "wood"], "A"],
  ["aabaabaaab", ["aabaaa", "aab", "b"], "C"],
  ["aaaa", ["aaa", "a", "a"], "C"],
])("the last option in %j, of %j, is %s", async (reply, options, answer) => {
  const { metrics } = await play({ question: "?", options, answer }, reply, { style: "gpqa", shuffle_seed: null });
  expect(metrics["reference_match"]).toBe(1);
});

test("long options in a long reply are found, and a reply beyond the limit of work has no reference_match", async () => {
  const options = Array.from("ABCDEFGHIJ", (letter, at) => `${"z".repeat(1990 - at)}${letter}`);
  const row = { question: "?", options, answer: "J" };
  const args = { style: "gpqa", shuffle_seed: null };
  const { metrics } = await play(row, `${"z".repeat(500_000)}J`, args);
  expect(metrics["reference_match"]).toBe(1);
  expect((await play(row, "z".repeat(700_000), args)).metrics["reference_match"]).toBeNull();
});

test("an index names the right option, too", async () => {
  expect((await play({ ...listed, answer: 2 }, "The answer is (C).")).reward).toBe(1);
});

test.each([
  [{ ...listed, answer: "D" }, "is none of the 3 options"],
  [{ ...listed, answer: 3 }, "is none of the 3 options"],
  [{ ...listed, options: ["one"] }, "options"],
  [{ ...listed, options: ["x".repeat(2001), "iron"] }, ""],
  [{ question: "?" }, ""],
])("the row %j is refused", async (row, message) => {
  await expect(play(row, "?")).rejects.toThrow(message);
});

test("a restart after every step changes nothing", async () => {
  const environment = await loadEnvironment.load({ style: "gpqa" });
  const [straight, restarted] = await Promise.all(
    [false, true].map((restartAfterEachTurn) =>
      runRollout(environment, { task: separate, model: scripted(["The answer is (A)."]), restartAfterEachTurn }),
    ),
  );
  expect(restarted).toEqual(straight);
});

test("an unknown argument is refused", async () => {
  await expect(loadEnvironment.load({ stile: "gpqa" })).rejects.toBeInstanceOf(z.ZodError);
});
