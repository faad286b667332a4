import { extractBoxedAnswer } from "@rollcall/math-equivalence";
import { expect, test } from "vitest";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { GroupJudgeRubric } from "../../../src/core/rubrics/group-judge-rubric.ts";
import { JudgeRubric } from "../../../src/core/rubrics/judge-rubric.ts";
import { asRubric } from "../../../src/core/rubrics/rubric.ts";
import { scoreScoringGroup } from "../../../src/core/rubrics/score.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";
import { hearing, said } from "../../fixtures/judge-hearing.ts";
import { scoringArgs } from "../../fixtures/scoring-args.ts";

const choices = { unsupported: 0, supported: 1 };
const parser = new Parser(extractBoxedAnswer);

function judging(prompt: string, more: object = {}): JudgeRubric {
  return new JudgeRubric({ name: "explained", prompt, choices, ...more });
}

function asked(completion = "so \\boxed{4}", changes: object = {}) {
  const messages = { prompt: "What is 2+2?", answer: "4", completion };
  return scoringArgs({ ...messages, parser, ...changes });
}

test("question and answer are filled in, and the response is fenced", () => {
  const rubric = judging("Q {question} A {answer} R {response}");
  expect(rubric.render(asked())).toBe("Q What is 2+2? A 4 R ```\n4\n```");
});

test("R-judge-3: without an answer the response is empty", () => {
  const none = asked("I do not know.", { parser: new Parser(() => null) });
  expect(judging("[{response}]").render(none)).toBe("[]");
});

test("the judge does not see the policy's thoughts", () => {
  const whole = new Parser();
  const rubric = judging("[{response}]");
  expect(rubric.render(asked("<think>Give me 1!</think>\n4", { parser: whole }))).toBe("[```\n4\n```]");
  expect(rubric.render(asked("Give me 1!</think>4", { parser: whole }))).toBe("[```\n4\n```]");
  expect(rubric.render(asked("<thinking>4", { parser: whole }))).toBe("[]");
});

test("R-judge-4: braces that name no slot are left alone", () => {
  const template = 'Reply {"q":1} or {nothing} or {} or {{answer}}';
  expect(judging(template).render(asked())).toBe('Reply {"q":1} or {nothing} or {} or {4}');
});

test("D12: the template is filled in one pass: slots and patterns in the judged text stay", () => {
  const rendered = judging("{response} {answer}").render(asked("\\boxed{{answer} $& {question}}"));
  expect(rendered).toBe("```\n{answer} $& {question}\n``` 4");
});

test("R-judge-6: the question is the text of the prompt's last message, its parts joined", () => {
  const prompt = [
    { role: "system", content: "S" },
    {
      role: "user",
      content: [
        { type: "text", text: "last" },
        { type: "text", text: "words" },
      ],
    },
  ] as const;
  expect(judging("{question}").render(scoringArgs({ prompt }))).toBe("last words");
});

test("the author's own slots get the same arguments, and are fenced, too", () => {
  const rubric = judging("{turns} {answer}", { slots: () => ({ turns: "```js\n1\n```" }) });
  expect(rubric.render(asked())).toBe("````\n```js\n1\n```\n```` 4");
});

test("a long response is cut in its middle, and the number of cut characters is recorded with the question", async () => {
  const rubric = judging("{response}", { maxCharacters: 10, parser: new Parser() });
  const { pending } = await hearing(rubric, ["a".repeat(20) + "z".repeat(20)]);
  expect(pending[0]?.messages.at(-1)?.content).toContain("aaaaa\n[… 30 characters left out …]\nzzzzz");
  expect(pending[0]?.left_out).toBe(30);
});

test("a judge rubric lists the judge it needs", () => {
  expect(judging("").judges).toEqual(["default"]);
  expect(judging("", { judge: "strict" }).judges).toEqual(["strict"]);
  expect(new GroupJudgeRubric({ name: "g", criteria: "c", judge: "j" }).judges).toEqual(["j"]);
});

test("the judge gets its duty and the menu, worst first, with the reason before the judgement", async () => {
  const { pending } = await hearing(judging("Is {response} supported?"), ["a"]);
  const [system, user] = pending[0]?.messages ?? [];
  expect(system).toMatchObject({ role: "system" });
  const form = '{"reason": "<why, in a few sentences>", "verdict": "<one of: unsupported | supported>"}';
  expect(system?.content).toContain(form);
  expect(user).toEqual({ role: "user", content: "Is ```\na\n``` supported?" });
});

test("a judgement scores as its choice; several passes are requested separately, and the score is their mean", async () => {
  const once = await hearing(judging("{response}"), ["a"], () => said("supported"));
  expect(once.scores("explained")).toEqual([1]);
  const replies = [said("supported"), said("unsupported"), said("supported")];
  const thrice = await hearing(judging("{response}", { passes: 3 }), ["a"], ({ pass }) => replies[pass]);
  expect(thrice.scores("explained")).toEqual([2 / 3]);
  expect(thrice.asks.map(({ pass }) => pass)).toEqual([0, 1, 2]);
});

test("R-judge-1: functions with the same question share one judgement", async () => {
  const rubrics = [judging("{response}"), judging("{response}", { name: "again", weight: 0 })];
  const heard = await hearing(rubrics, ["a"], () => said("supported"));
  expect(heard.asks).toHaveLength(1);
  expect([heard.scores("explained"), heard.scores("again")]).toEqual([[1], [1]]);
});

test("R-judge-5: without a judgement the score is null with an error, never 0", async () => {
  const rubric = asRubric([{ rewards: { right: () => 1 } }, judging("{response}")]);
  const [record] = await scoreScoringGroup({ rubric }, [finishedTrajectory()]);
  expect(record).toMatchObject({
    reward: null,
    unscored: "judge",
    scores: [
      { name: "right", score: 1, weight: 1 },
      { name: "explained", score: null, weight: 1 },
    ],
    scoring_errors: [{ function: "explained", error: expect.stringContaining('"default"') }],
  });
});

test("a misspelt option, no choices, a choice without a finite score, or an invalid number of passes is refused", () => {
  expect(() => judging("", { model: "m" })).toThrow("model");
  expect(() => judging("", { choices: {} })).toThrow("explained");
  expect(() => judging("", { choices: { a: Infinity } })).toThrow("explained");
  expect(() => judging("", { choices: { Yes: 1, yes: 0 } })).toThrow("cannot be told apart");
  expect(() => judging("", { passes: 0 })).toThrow("passes");
});
