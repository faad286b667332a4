import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { dataset } from "../../../src/core/environments/dataset.ts";
import { SingleTurnEnv } from "../../../src/core/environments/environment.ts";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { MathRubric } from "../../../src/core/rubrics/math-rubric.ts";

const Task = z.object({ question: z.string(), answer: z.string(), gold: z.string().optional() });
type Row = z.infer<typeof Task>;

function score(reply: string, answer: string, rubric: MathRubric<Row, object> = new MathRubric()) {
  const environment = new SingleTurnEnv({
    dataset: dataset(Task, "uploaded"),
    rubric: [rubric, { metrics: { length: ({ completion }) => completion.length } }],
  });
  const task = { question: "How many?", answer, gold: "\\boxed{7}" };
  return runRollout(environment, { task, model: scripted([reply]) });
}

test.each([
  ["\\boxed{1}", "1", 1],
  ["\\boxed{x+1}", "1+x", 1],
  ["\\boxed{\\frac{1}{2}}", "0.5", 1],
  ["\\boxed{1}", "2", 0],
  ["\\boxed{1/3}", "0.5", 0],
  ["<think>\\boxed{2}</think>\\boxed{1}", "1", 1],
  ["<think>\\boxed{1}</think>\\boxed{2}", "1", 0],
  ["so \\boxed{2}? No.\n</think>\nit is 1", "1", 1],
  ["[THINK]\\boxed{2}[/THINK] it is \\boxed{1}", "1", 1],
  ["<|channel|>analysis<|message|>\\boxed{2}<|end|><|start|>assistant<|channel|>final<|message|>1", "1", 1],
  ["<think>\\boxed{1}", "1", 0],
  ["I said 7. <think>or 8", "7", 1],
  ["it is 18", "16 + 2 = 18\n#### 18", 1],
  ["", "1", 0],
  ["\\boxed{\\frac{1}{}", "1", 0],
])("%j against %j scores %d", async (reply, answer, reward) => {
  const report = await score(reply, answer);
  expect(report).toMatchObject({ reward, metrics: { correct_answer: reward, length: 1 } });
});

test("a repeated question is not an answer, although its value is equal", async () => {
  const environment = new SingleTurnEnv({
    dataset: dataset(Task, "uploaded"),
    rubric: new MathRubric(),
  });
  const question = "What is $(1+i)^2$?";
  const task = { question, answer: "2i" };
  expect((await runRollout(environment, { task, model: scripted([question]) })).reward).toBe(0);
  expect((await runRollout(environment, { task, model: scripted(["$2i$"]) })).reward).toBe(1);
});

test("equal answers of 100,000 digits are right if that length is allowed, and wrong if not", async () => {
  const digits = "7".repeat(100_000);
  const allowed = new MathRubric<Row, object>({ maxCharacters: 200_000 });
  expect((await score(`\\boxed{${digits}}`, digits, allowed)).reward).toBe(1);
  expect((await score(`\\boxed{${digits}}`, digits)).reward).toBe(0);
});

test("a row's answer that cannot be parsed leaves the rollout unscored, whatever the reply", async () => {
  for (const reply of ["\\boxed{1}", ""]) {
    const report = await score(reply, "\\frac{1}{");
    expect(report.reward).toBeNull();
    expect(report.scoring_errors).toMatchObject([
      { function: "correct_answer", error: expect.stringContaining("MalformedTargetError") },
    ]);
  }
});

test.each([
  ["1", "\\frac{1}{", "MalformedTargetError: the target cannot be read: a bracket does not close"],
  ["9^{9^{9}}", "5", "WorkBudgetError: the comparison was given up: a number of more than 2000 digits"],
])("%s against %s is recorded as %s", async (answer, target, error) => {
  const { reward, scoring_errors } = await score(`\\boxed{${answer}}`, target);
  expect({ reward, scoring_errors }).toEqual({
    reward: null,
    scoring_errors: [{ function: "correct_answer", error, retryable: false }],
  });
});

test("an equality that no rule proves scores 0, and is counted", async () => {
  const undecided = await score("\\boxed{\\cos 20^\\circ\\cos 40^\\circ\\cos 80^\\circ}", "\\frac18");
  expect(undecided).toMatchObject({ reward: 0, metrics: { correct_answer: 0, undecided: 1 }, scoring_errors: [] });
  const different = await score("\\boxed{\\cos 20^\\circ}", "\\frac18");
  expect(different).toMatchObject({ reward: 0, metrics: { correct_answer: 0, undecided: 0 } });
  expect(await score("\\boxed{1}", "1")).toMatchObject({ reward: 1, metrics: { undecided: 0 } });
});

test("a row's answer outside of the grammar is compared as text", async () => {
  const integral = "\\int_0^1 f(x)\\,dx";
  expect((await score(`\\boxed{${integral}}`, integral)).reward).toBe(1);
  expect(await score("\\boxed{1}", integral)).toMatchObject({ reward: 0, scoring_errors: [] });
});

test("D19: an answer needs no box, a percentage and a decimal are exact, and a thought is not an answer", async () => {
  expect((await score("it is 18", "18")).reward).toBe(1);
  expect((await score("<think>\\boxed{18}", "18")).reward).toBe(0);
  expect((await score("\\boxed{5\\%}", "0.05")).reward).toBe(0);
  expect((await score("\\boxed{5\\%}", "5")).reward).toBe(0);
  expect((await score("\\boxed{0.333333}", "\\frac13")).reward).toBe(0);
  expect((await score("\\boxed{5\\text{ cm}}", "5\\text{ m}")).reward).toBe(0);
  expect((await score("\\boxed{1}", "")).reward).toBeNull();
});

test("a comparison beyond its budget leaves the rollout unscored, with the error's class", async () => {
  const report = await score("\\boxed{9^{9^{9}}}", "5");
  expect(report.reward).toBeNull();
  expect(report.scoring_errors).toMatchObject([{ error: expect.stringContaining("WorkBudgetError") }]);
});

test("name, weight, target, strictness and parser are options", async () => {
  const gold = new MathRubric<Row, object>({
    name: "right",
    weight: 2,
    answer: ({ task }) => task.gold ?? "",
  });
  expect(await score("it is 7", "1", gold)).toMatchObject({ reward: 2, metrics: { right: 1 } });
  const strict = new MathRubric<Row, object>({ strict: true });
  expect((await score("it is 1", "1", strict)).reward).toBe(0);
  const ratio = new MathRubric<Row, object>({ percentIsRatio: true });
  expect((await score("\\boxed{5\\%}", "0.05", ratio)).reward).toBe(1);
  const own = new MathRubric<Row, object>({ parser: new Parser((text) => text.slice(1)) });
  expect((await score("=1", "1", own)).reward).toBe(1);
  expect(() => new MathRubric(JSON.parse('{"wieght": 1}'))).toThrow("wieght");
});
