import { textOf } from "rollcall";
import { runRollout, scripted, type TestModel } from "rollcall/testing";
import { expect, test } from "vitest";
import { rowAt } from "../../src/core/rollout/task.ts";
import { goldPolicy, loadEnvironment } from "./environment.ts";
import { feedbackOn, lettersIn } from "./feedback.ts";
import { WORDS } from "./words.ts";

const task = { question: "Find it.", answer: "crane" };
const log = (word: string) => `Let me think.\n<guess>\n${word}\n</guess>`;

async function play(model: TestModel, args = {}, restartAfterEachTurn = false) {
  return runRollout(await loadEnvironment(args), { task, model, restartAfterEachTurn });
}

test.each([
  ["crane", "crane", "GGGGG"],
  ["slate", "crane", "XXGXG"],
  ["nacre", "crane", "YYYYG"],
  ["allow", "llama", "YGYXX"],
  ["sassy", "gases", "YGGXX"],
  ["eerie", "crane", "XXYXG"],
])("%s against %s is %s", (guess, answer, feedback) => {
  expect(feedbackOn(guess, answer)).toBe(feedback);
});

test("partial credit is 0.2 for a place and 0.1 for a letter", () => {
  expect(["XXGXG", "YYYYG", ""].map(lettersIn)).toEqual([0.4, expect.closeTo(0.6), 0]);
});

test("the right word ends the game at once with the full score", async () => {
  const report = await play(scripted(goldPolicy(task)));
  expect(report).toMatchObject({
    stop_condition: "has_final_env_response",
    error: null,
    turns: 1,
    metrics: { correct_answer: 1, partial_answer: 0, length_bonus: 1, format_reward: 1 },
  });
  expect(report.reward).toBeCloseTo(2.2);
  expect(textOf(report.completion.at(-1))).toBe("C R A N E\nG G G G G\n\nThat is the word.");
});

test("each guess is answered, and the bonus decreases with their number; restarts change nothing", async () => {
  const words = ["SLATE", "nacre", "crane"].map(log);
  const report = await play(scripted(words));
  expect(report.completion.filter(({ role }) => role !== "assistant").map(textOf)).toEqual([
    "S L A T E\nX X G X G\n\nYou have 5 guesses left.",
    "N A C R E\nY Y Y Y G\n\nYou have 4 guesses left.",
    "C R A N E\nG G G G G\n\nThat is the word.",
  ]);
  expect(report.metrics).toMatchObject({ correct_answer: 1, length_bonus: 1 / 3, guesses: 3 });
  expect(await play(scripted(words), {}, true)).toEqual(report);
});

test("a lost game keeps the credit for its last guess, and the last reply has the word", async () => {
  const report = await play(scripted(["slate", "sauce"].map(log)), { max_guesses: 2 });
  expect(report).toMatchObject({ stop_condition: "has_final_env_response", turns: 2 });
  expect(report.metrics).toMatchObject({ correct_answer: 0, length_bonus: 0, guesses: 2 });
  expect(report.metrics["partial_answer"]).toBeCloseTo(lettersIn(feedbackOn("sauce", "crane")));
  expect(textOf(report.completion.at(-1))).toMatch(/The word was crane\.$/);
});

test("a reply without a word counts as a guess, gets a message about it, and lowers the format reward", async () => {
  const report = await play(scripted(["crane?", log("cranes"), log("crane")]));
  const replies = report.completion.filter(({ role }) => role !== "assistant").map(textOf);
  expect(replies[0]).toMatch(/^That is no guess: .*\n\nYou have 5 guesses left\.$/);
  expect(replies[1]).toMatch(/^That is no guess/);
  expect(report.metrics).toMatchObject({ correct_answer: 1, guesses: 1, length_bonus: 1 });
  expect(report.metrics["format_reward"]).toBeLessThan(1);
});

test("the model does not see the word before the end", async () => {
  await play(({ messages, turn }) => {
    expect(JSON.stringify(messages)).not.toContain("crane");
    return turn < 5 ? log("plumb") : "I give up.";
  });
});

test("the words of rows are drawn from the list, by seed and index alone", async () => {
  const { dataset } = await loadEnvironment();
  const words = Array.from({ length: 40 }, (_, index) => rowAt(dataset, index, 1)["answer"]);
  expect(new Set(words).size).toBeGreaterThan(30);
  expect(words.every((word) => WORDS.includes(String(word)))).toBe(true);
  expect(rowAt(dataset, 3, 1)).toEqual(rowAt(dataset, 3, 1));
});

test("the list has a few hundred words of five letters, each once", () => {
  expect(WORDS.length).toBeGreaterThan(500);
  expect(new Set(WORDS).size).toBe(WORDS.length);
  expect(WORDS.every((word) => /^[a-z]{5}$/.test(word))).toBe(true);
});

test("a guess in the thoughts does not count", async () => {
  const report = await play(scripted([`<think>maybe ${log("slate")}</think>${log("crane")}`]));
  expect(report.metrics).toMatchObject({ correct_answer: 1, guesses: 1 });
});
