import { expect, test } from "vitest";
import type { ScoringArgs } from "../../../src/core/environments/contract.ts";
import { extractBoxedAnswer } from "../../../src/core/parsers/extract.ts";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { JudgeRubric } from "../../../src/core/rubrics/judge-rubric.ts";
import { asRubric } from "../../../src/core/rubrics/rubric-group.ts";
import { scoreUnit } from "../../../src/core/score.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";

const choices = { unsupported: 0, supported: 1 };

function judging(prompt: string): JudgeRubric {
  return new JudgeRubric({ name: "explained", prompt, choices });
}

function asked(changes: Partial<ScoringArgs<unknown, unknown>>): ScoringArgs<unknown, unknown> {
  const fields = {
    prompt: [{ role: "user", content: "What is 2+2?" }] as const,
    completion: [{ role: "assistant", content: "so \\boxed{4}" }] as const,
    answer: "4",
    info: {},
    task: {},
  };
  const state = { ...fields, trajectory: [], turn: 1, final_env_response: null };
  return { ...fields, state, parser: new Parser(extractBoxedAnswer), ...changes };
}

test("question, answer and response are filled in", () => {
  const rubric = judging("Q {question} A {answer} R {response}");
  expect(rubric.render(asked({}))).toBe("Q What is 2+2? A 4 R 4");
});

test("R-judge-3: without an answer the response is empty", () => {
  expect(judging("[{response}]").render(asked({ completion: [] }))).toBe("[]");
});

test("R-judge-4: braces that name no slot are left alone", () => {
  const template = 'Reply {"q":1} or {nothing} or {} or {{answer}}';
  expect(judging(template).render(asked({}))).toBe('Reply {"q":1} or {nothing} or {} or {4}');
});

test("the template is filled in one pass: slots and patterns in the text that is judged stay", () => {
  const completion = [{ role: "assistant", content: "\\boxed{{answer} $& {question}}" }] as const;
  const rendered = judging("{response} {answer}").render(asked({ completion, answer: "4" }));
  expect(rendered).toBe("{answer} $& {question} 4");
});

test("R-judge-6: the question is the last message of the prompt", () => {
  const prompt = [
    { role: "system", content: "S" },
    { role: "user", content: "last" },
  ] as const;
  expect(judging("{question}").render(asked({ prompt }))).toBe("last");
});

test("slots of one's own are filled from the same arguments", () => {
  const rubric = new JudgeRubric({
    name: "j",
    prompt: "{turns} {answer}",
    choices,
    slots: ({ state }) => ({ turns: String(state.turn) }),
  });
  expect(rubric.render(asked({}))).toBe("1 4");
});

test("a judge rubric says which judge it needs", () => {
  expect(judging("").judges).toEqual(["default"]);
  expect(new JudgeRubric({ name: "j", prompt: "", choices, judge: "strict" }).judges).toEqual([
    "strict",
  ]);
});

test("R-judge-5: without a verdict the score is null with an error, never 0", async () => {
  const rubric = asRubric([{ rewards: { right: () => 1 } }, judging("{response}")]);
  const [record] = await scoreUnit({ rubric }, [finishedTrajectory()]);
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

test("a misspelt option, no choices, or a choice without a finite score is refused", () => {
  const options = { name: "j", prompt: "", choices, model: "m" };
  expect(() => Reflect.construct(JudgeRubric, [options])).toThrow("model");
  expect(() => new JudgeRubric({ name: "j", prompt: "", choices: {} })).toThrow("j");
  expect(() => new JudgeRubric({ name: "j", prompt: "", choices: { a: Infinity } })).toThrow("j");
});
