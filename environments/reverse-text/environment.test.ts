import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { rowAt } from "../../src/core/rollout/task.ts";
import { loadEnvironment } from "./environment.ts";

const Row = z.object({ question: z.string(), answer: z.string() });
const task = { question: "Reverse: abcde", answer: "edcba" };

async function play(reply: string, restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model: scripted([reply]), restartAfterEachTurn });
}

test.each(["edcba", " edcba\n", "<think>abcde?</think>\nedcba", "abcde?</think> edcba"])(
  "%j is right",
  async (reply) => {
    expect(await play(reply)).toMatchObject({ reward: 1, metrics: { exact: 1, lcs: 1 } });
  },
);

test.each([
  ["abcde", 0.2],
  ["edcb", 8 / 9],
  ["EDCBA", 0],
  ["It is edcba", 0.625],
  ["zzz", 0],
  ["", 0],
])("%j is wrong, and its likeness to the answer is %d", async (reply, lcs) => {
  expect(await play(reply)).toMatchObject({ reward: 0, metrics: { exact: 0, lcs } });
});

test("a restart after every step changes nothing", async () => {
  expect(await play("edcba", true)).toEqual(await play("edcba"));
});

test("words are endless, the same for the same seed, and have the right answers", async () => {
  const { dataset } = await loadEnvironment({ min_length: 2, max_length: 4 });
  const lengths = new Set<number>();
  for (let index = 0; index < 100; index += 1) {
    const row = rowAt(dataset, index, 7);
    expect(rowAt(dataset, index, 7)).toEqual(row);
    const { question, answer } = Row.parse(row);
    expect(question).toMatch(/^Reverse: [a-z]+$/);
    expect(question.replace("Reverse: ", "")).toBe([...answer].reverse().join(""));
    lengths.add(answer.length);
  }
  expect([...lengths].sort()).toEqual([2, 3, 4]);
});

test("a minimal length above the maximal length is refused", async () => {
  const args = { min_length: 5, max_length: 4 };
  await expect(loadEnvironment(args)).rejects.toThrow("max_length must be at least min_length");
});
