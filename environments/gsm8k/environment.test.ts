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

test("the reference solution scores 1, and with only its final number changed 0", async () => {
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
  "#### **18**",
  "#### 18 dollars a day",
  "#### Step 1\nIt is 9 * 2.\n#### Final answer\n18",
  "#### 18\n\n#### Check\n9 * 2",
  "\\boxed{18\\text{ dollars}}",
  "\\boxed{18 \\text{ dollars/day}}",
  "\\boxed{18\\%}",
  "\\boxed{x = 18}",
  "\\boxed{\\frac{36}{2}}",
  "\\boxed{１８}",
  "\\boxed{18}, and once more in \\boxed{}",
  "18",
  "The answer is 18.",
  "She sells 9 eggs.\n\nSo Janet makes **$18** per day. I hope this helps!",
  "The answer is 17. Wait, one more: it is 18.",
  "<answer>18 dollars</answer>",
])("%j is right", async (reply) => {
  expect(await rewardFor(reply)).toBe(1);
});

test.each([
  "",
  "The answer is not 18.",
  "It is 17, not 18.",
  "The answer is 18. Wait, it is 17.",
  "She makes $17 by selling 9 eggs at $18 each.",
  "18 or 17",
  "\\boxed{17} and not 18",
  "#### ",
  "\\boxed{}",
  "\\boxed{180}",
  "\\boxed{-18}",
  "\\boxed{1.8}",
  "\\boxed{17}\n#### 18",
  "#### 18\n#### 9",
  "#### Step 18",
  "\\boxed{19\\text{ dollars}}",
  "\\boxed{18 \\text{ or } 19}",
  "\\boxed{18\\text{ million}}",
  "\\boxed{18x}",
  "\\boxed{18} and then \\boxed{19}",
  "\\boxed{18} and then \\boxed{\\text{none}}",
])("%j is wrong, or no answer", async (reply) => {
  expect(await rewardFor(reply)).toBe(0);
});

test("thousands separators make no difference, on either side", async () => {
  expect(await rewardFor("\\boxed{1600}", "so\n#### 1,600")).toBe(1);
  expect(await rewardFor("\\boxed{1,600}", "so\n#### 1600")).toBe(1);
  expect(goldAnswer("bare 7")).toBe("bare 7");
  expect(extractAnswer("no number")).toBeNull();
});

test.each(["1{,}600", "1,\\!600", "1\\,600", "1 600", "1\u202f600", "1,600.00", "\\$1,600", "１，６００"])(
  "\\boxed{%s} is 1600",
  async (number) => {
    expect(await rewardFor(`\\boxed{${number}}`, "so\n#### 1600")).toBe(1);
    expect(await rewardFor(`\\boxed{${number}}`, "so\n#### 1601")).toBe(0);
  },
);

test("zeros after the decimal point make no difference, other digits do", async () => {
  expect(await rewardFor("\\boxed{18.50}", "so\n#### 18.5")).toBe(1);
  expect(await rewardFor("\\boxed{18.5}", "so\n#### 18.50")).toBe(1);
  expect(await rewardFor("\\boxed{18.05}", "so\n#### 18.5")).toBe(0);
});

test("the prompt requests the box, unless the argument changes it", async () => {
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

test("a restart after every step changes nothing", async () => {
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

test.each([
  ["<think>\\boxed{17}</think>\\boxed{18}", 1],
  ["<think>\\boxed{18}</think>\\boxed{17}", 0],
  ["\\boxed{18}, or 17?\n</think>\n#### 17", 0],
  ["#### 17?\n</think>\n#### 18", 1],
  ["<thinking>\\boxed{18}", 0],
  ["<|channel|>analysis<|message|>\\boxed{17}<|end|><|start|>assistant<|channel|>final<|message|>#### 18", 1],
])("a thought is not an answer: %j scores %d", async (reply, reward) => {
  expect(await rewardFor(reply)).toBe(reward);
});

test.each([
  ["#### 18", 1, 1],
  ["#### 18.00", 0, 0],
  ["The answer is \\boxed{18}.", 0, 1],
  ["It is 18, with 2 to spare.", 0, 0],
  ["#### 18\nThat leaves 2.", 1, 0],
  ["none", 0, 0],
])("%j scores %d by strict match and %d by flexible extract", async (reply, strict, flexible) => {
  const scored = ["strict_match", "flexible_extract"].map(async (scoring) => {
    const environment = await loadEnvironment.load({ scoring });
    return (await runRollout(environment, { task, model: scripted([reply]) })).reward;
  });
  expect(await Promise.all(scored)).toEqual([strict, flexible]);
});

test.each(["none", "#### ", "[invalid]", "18, or #### many"])(
  "the score is missing if the gold answer %j has no number",
  async (answer) => {
    for (const scoring of ["strict_match", "flexible_extract"]) {
      const environment = await loadEnvironment.load({ scoring });
      for (const reply of ["none", "#### 18"]) {
        const model = scripted([reply]);
        expect((await runRollout(environment, { task: { ...task, answer }, model })).reward).toBeNull();
      }
    }
  },
);
