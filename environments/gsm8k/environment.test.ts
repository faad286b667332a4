import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { extractAnswer, goldAnswer } from "./answer.ts";
import { loadEnvironment } from "./environment.ts";

const task = {
  question: "Ducks lay 16 eggs, 7 are eaten, the rest sell at $2. What is earned?",
  answer: "16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nThat is 9 * 2 = $<<9*2=18>>18 a day.\n#### 18",
};

async function rewardFor(reply: string, answer = task.answer) {
  const environment = await loadEnvironment();
  const model = scripted([reply]);
  return (await runRollout(environment, { task: { ...task, answer }, model })).reward;
}

test("the reference solution scores 1, and with only its final number altered 0", async () => {
  expect(await rewardFor(task.answer)).toBe(1);
  expect(await rewardFor(task.answer.replace("#### 18", "#### 19"))).toBe(0);
});

test.each([
  "\\boxed{18}",
  "first \\boxed{17}, no: \\boxed{18}",
  "It is $\\boxed{\\$18}$.",
  "\\boxed{18.00}",
  "\\boxed{ 18. }",
  "#### $18",
  "#### 18\nThat is my answer.",
])("%j is right", async (reply) => {
  expect(await rewardFor(reply)).toBe(1);
});

test.each([
  "18",
  "The answer is 18.",
  "",
  "#### ",
  "\\boxed{}",
  "\\boxed{180}",
  "\\boxed{-18}",
  "\\boxed{1.8}",
  "\\boxed{17}\n#### 18",
  "#### 18\n#### 9",
])("%j is wrong, or no answer", async (reply) => {
  expect(await rewardFor(reply)).toBe(0);
});

test("thousands separators are one spelling of the same number, on either side", async () => {
  expect(await rewardFor("\\boxed{1600}", "so\n#### 1,600")).toBe(1);
  expect(await rewardFor("\\boxed{1,600}", "so\n#### 1600")).toBe(1);
  expect(goldAnswer("bare 7")).toBe("bare 7");
  expect(extractAnswer("no mark")).toBeNull();
});

test("the prompt asks for the box, unless the argument says otherwise", async () => {
  const environment = await loadEnvironment({ system_prompt: "Answer after ####." });
  await runRollout(environment, {
    task,
    model: ({ messages }) => {
      expect(messages).toEqual([
        { role: "system", content: "Answer after ####." },
        { role: "user", content: task.question },
      ]);
      return task.answer;
    },
  });
  const [usual] = (await loadEnvironment()).players;
  expect(usual?.systemPrompt).toContain("\\boxed{}");
});

test("surviving a restart after every step changes nothing", async () => {
  const environment = await loadEnvironment();
  const [straight, restarted] = await Promise.all(
    [false, true].map((restartAfterEachTurn) =>
      runRollout(environment, { task, model: scripted([task.answer]), restartAfterEachTurn }),
    ),
  );
  expect(restarted).toEqual(straight);
  expect(straight?.metrics).toMatchObject({ answer_length: task.answer.length });
});

test("an unknown argument is refused", async () => {
  const args = { systemprompt: "x" };
  await expect(loadEnvironment.load(args)).rejects.toBeInstanceOf(z.ZodError);
});
