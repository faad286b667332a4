import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { rowAt } from "../../src/core/rollout/task.ts";
import { loadEnvironment } from "./environment.ts";

const Row = z.object({ question: z.string(), answer: z.string() });
const task = { question: "What is 12 * 3 + 12?", answer: "48" };
const product: Reply = { tool_calls: [{ name: "multiply", arguments: { a: 12, b: 3 } }] };
const sum: Reply = { tool_calls: [{ name: "add", arguments: { a: 36, b: 12 } }] };

async function play(replies: Reply[], restartAfterEachTurn = false) {
  const environment = await loadEnvironment();
  return runRollout(environment, { task, model: scripted(replies), restartAfterEachTurn });
}

test("the gold answer through both tools is right and brief", async () => {
  const report = await play([product, sum, "It is 48."]);
  expect(report.metrics).toEqual({
    right: 1,
    brief: 1,
    num_turns: 3,
    total_tool_calls: 2,
    add_calls: 1,
    subtract_calls: 0,
    multiply_calls: 1,
  });
  expect(report).toMatchObject({ reward: 1.1, stop_condition: "no_tools_called" });
  expect(report.completion[1]).toMatchObject({ role: "tool", content: "36" });
});

test("a restart after every step changes nothing", async () => {
  const replies = [product, sum, "48"];
  expect(await play(replies, true)).toEqual(await play(replies));
});

test.each(["47", "It is 480.", "I do not know.", "48? No: 49", ""])("%j is not right", async (reply) => {
  expect((await play([reply])).metrics).toMatchObject({ right: 0 });
});

test("a wrong call is answered with the error, and the model may correct itself", async () => {
  const wrong: Reply = { tool_calls: [{ name: "multiply", arguments: { a: "12", b: 3 } }] };
  const report = await play([wrong, product, "48"]);
  expect(report.completion[1]?.content).toContain("bad arguments for multiply: a:");
  expect(report.metrics).toMatchObject({ right: 1, multiply_calls: 2 });
});

test("a model that only calls tools is stopped at four turns", async () => {
  const report = await play([product, product, product, product]);
  expect(report).toMatchObject({ stop_condition: "max_turns_reached", turns: 4, reward: 0 });
});

test("tasks are endless, the same for the same seed, and have the right answers", async () => {
  const { dataset } = await loadEnvironment({ max: 12 });
  for (let index = 0; index < 200; index += 1) {
    const row = rowAt(dataset, index, 7);
    expect(rowAt(dataset, index, 7)).toEqual(row);
    const { question, answer } = Row.parse(row);
    const [a = 0, b = 0, c = 0] = (question.match(/\d+/g) ?? []).map(Number);
    expect([String(a * b + c), Math.max(a, b) < 12]).toEqual([answer, true]);
  }
});

test("tasks of one step add, subtract and multiply, and subtract the smaller number", async () => {
  const { dataset } = await loadEnvironment({ max: 9, steps: 1 });
  const results = {
    "+": (a: number, b: number) => a + b,
    "-": (a: number, b: number) => a - b,
    "*": (a: number, b: number) => a * b,
  };
  const operators = new Set<string>();
  for (let index = 0; index < 200; index += 1) {
    const { question, answer } = Row.parse(rowAt(dataset, index, 7));
    const [, left, operator, right] = /^What is (\d) ([-+*]) (\d)\?$/.exec(question) ?? [];
    const operation = z.enum(["+", "-", "*"]).parse(operator);
    const value = results[operation](Number(left), Number(right));
    expect([String(value), value >= 0, left !== "0", right !== "0"]).toEqual([answer, true, true, true]);
    operators.add(operation);
  }
  expect(operators.size).toBe(3);
});

test("an answer to one step is brief with one call, but not with two", async () => {
  const environment = await loadEnvironment({ steps: 1 });
  const row = { question: "What is 9 - 2?", answer: "7" };
  const difference: Reply = { tool_calls: [{ name: "subtract", arguments: { a: 9, b: 2 } }] };
  const brief = async (...replies: Reply[]) =>
    (await runRollout(environment, { task: row, model: scripted(replies) })).metrics["brief"];
  expect(await brief(difference, "7")).toBe(1);
  expect(await brief(difference, difference, "7")).toBe(0);
});

test("operands so large that results would not be exact are refused", async () => {
  await expect(loadEnvironment({ max: 1_000_001 })).rejects.toThrow("1000000");
});

test.each([
  ["<think>12 * 3 is 36</think>It is 48.", 1],
  ["It is 36.\n<think>or 48", 0],
  ["[THINK]48[/THINK]I do not know.", 0],
])("a thought is not an answer: %j", async (reply, right) => {
  expect((await play([reply])).metrics).toMatchObject({ right });
});
