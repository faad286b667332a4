import { expect, test } from "vitest";
import { askedMessages, type Menu, readJudgement } from "../../../src/core/rubrics/judgement.ts";

const LABELS: Menu = { kind: "label", labels: ["no", "partly", "yes"] };
const CORRECT: Menu = { kind: "label", labels: ["incorrect", "correct"] };
const BOOLEANS: Menu = { kind: "label", labels: ["false", "true"] };
const SUPPORTED: Menu = { kind: "label", labels: ["not_supported", "partly_supported", "supported"] };
const GRADES: Menu = { kind: "label", labels: ["C", "B", "A"] };
const NUMBER: Menu = { kind: "number", range: [0, 10] };
const RATIO: Menu = { kind: "number", range: [0, 1] };
const SCORES: Menu = { kind: "scores", ids: ["a"], range: [0, 10] };

test.each<[Menu, string, string | number]>([
  [LABELS, '```json\n{"reason": "so", "verdict": "yes"}\n```', "yes"],
  [LABELS, '{"reason":"so","verdict":"Yes"}', "yes"],
  [LABELS, '{"verdict":"yes."}', "yes"],
  [LABELS, '{"verdict":"**yes**"}', "yes"],
  [LABELS, '{"verdict":"ｙｅｓ"}', "yes"],
  [LABELS, '｛"verdict"："yes"｝', "yes"],
  [LABELS, '{"verdict":"[yes]"}', "yes"],
  [LABELS, '{"verdict":"<yes>"}', "yes"],
  [LABELS, '{"verdict":"\'yes\'"}', "yes"],
  [LABELS, '{"verdict":"“yes”"}', "yes"],
  [LABELS, '{"verdict":"`yes`"}', "yes"],
  [LABELS, '{"verdict":true}', "yes"],
  [LABELS, '{"verdict":"true"}', "yes"],
  [LABELS, '{"verdict":"False"}', "no"],
  [BOOLEANS, '{"verdict":true}', "true"],
  [BOOLEANS, '{"verdict":"True"}', "true"],
  [BOOLEANS, '{"verdict":"Yes"}', "true"],
  [BOOLEANS, "{'verdict': False}", "false"],
  [LABELS, '{"Verdict":"yes"}', "yes"],
  [LABELS, '{"VERDICT":"YES"}', "yes"],
  [LABELS, '{"final_verdict":"yes"}', "yes"],
  [NUMBER, '{"reason":"so","score":7}', 7],
  [NUMBER, '{"rating":"7/10"}', 7],
  [NUMBER, '{"Score":7}', 7],
  [LABELS, '{"label":"yes"}', "yes"],
  [LABELS, '{"result":{"reason":"x","verdict":"yes"}}', "yes"],
  [LABELS, '[{"reason":"x","verdict":"yes"}]', "yes"],
  [NUMBER, '{"verdict":"7"}', 7],
  [NUMBER, '{"verdict":"7 out of 10"}', 7],
  [NUMBER, '{"verdict":"7 / 10"}', 7],
  [NUMBER, '{"verdict":"7."}', 7],
  [NUMBER, '{"verdict":"**7**"}', 7],
  [NUMBER, '{"verdict":"７"}', 7],
  [NUMBER, '{"verdict":"7.0"}', 7],
  [NUMBER, '{"verdict": 7 out of 10}', 7],
  [NUMBER, '{"verdict": 7 / 10}', 7],
  [NUMBER, '{"verdict":"7 points"}', 7],
  [NUMBER, '{"verdict":"Score: 7"}', 7],
  [NUMBER, '{"verdict":"(7)"}', 7],
  [RATIO, '{"verdict": .7}', 0.7],
  [RATIO, '{"verdict":"0.7"}', 0.7],
  [RATIO, '{"verdict":1.}', 1],
  [NUMBER, '{"verdict":07}', 7],
  [NUMBER, '{"verdict": 7,}', 7],
  [NUMBER, '{"verdict": 7;}', 7],
  [LABELS, "**Verdict**: yes", "yes"],
  [LABELS, "**Verdict:** yes", "yes"],
  [LABELS, "Verdict: **yes**.", "yes"],
  [LABELS, "It is fine.\n\nVerdict: yes", "yes"],
  [LABELS, "Reason: so.\nVerdict - yes", "yes"],
  [LABELS, "The verdict is yes.", "yes"],
  [LABELS, 'Final verdict: "yes"', "yes"],
  [LABELS, "Final Verdict: [[yes]]", "yes"],
  [LABELS, "verdict = yes", "yes"],
  [LABELS, "yes", "yes"],
  [LABELS, "**Yes**.", "yes"],
  [LABELS, "### Verdict\n\nyes", "yes"],
  [LABELS, "“Verdict”: “yes”", "yes"],
  [LABELS, "Ｖｅｒｄｉｃｔ：ｙｅｓ", "yes"],
  [NUMBER, "Score - 7", 7],
  [NUMBER, "Score: 7/10", 7],
  [NUMBER, "Score: 7 out of 10", 7],
  [NUMBER, "**Score:** 7", 7],
  [NUMBER, "I find it good.\nScore: **7**", 7],
  [NUMBER, "Rating: [[7]]", 7],
  [NUMBER, "7", 7],
  [NUMBER, "7/10", 7],
  [NUMBER, "The score is 7.", 7],
  [NUMBER, "Score — 7", 7],
  [NUMBER, "Score: 7.5", 7.5],
  [NUMBER, "My score: 7", 7],
  [NUMBER, "I would give it a 7 out of 10.", 7],
  [NUMBER, "Final score: 7.0 / 10.0", 7],
  [NUMBER, "<score>7</score>", 7],
  [LABELS, "<verdict>yes</verdict>", "yes"],
  [LABELS, "<think>Verdict: no</think>Verdict: yes", "yes"],
  [LABELS, '<think>{"verdict":"no"}</think>{"verdict":"yes"}', "yes"],
  [LABELS, '{"reason": "so"}\nVerdict: yes', "yes"],
  [CORRECT, "Verdict: Correct", "correct"],
  [CORRECT, '{"verdict":"Correct!"}', "correct"],
  [SUPPORTED, '{"verdict":"not supported"}', "not_supported"],
  [SUPPORTED, '{"verdict":"Partly Supported"}', "partly_supported"],
  [SUPPORTED, "Verdict: not supported", "not_supported"],
  [GRADES, '{"verdict":"(A)"}', "A"],
  [GRADES, "[[A]]", "A"],
  [GRADES, "Verdict: B.", "B"],
  [GRADES, "My final verdict is: [[A]]", "A"],
  [LABELS, '{"verdict": "yes"}}', "yes"],
  [LABELS, "Verdict: `yes`", "yes"],
  [LABELS, '{"reason": "so", "verdict": "yes" // sure\n}', "yes"],
  [LABELS, 'json\n{"verdict":"yes"}', "yes"],
  [LABELS, '{"verdict": yes.}', "yes"],
  [LABELS, "{“verdict”: ‘yes’}", "yes"],
  [NUMBER, '{"verdict": "7 (of 10)"}', 7],
  [LABELS, '{"reason":"so","verdict":"verdict: yes"}', "yes"],
])("%j: %j gives %j", (menu, reply, value) => {
  expect(readJudgement(menu, reply)).toMatchObject({ ok: true, value });
});

test.each<[Menu, string]>([
  [LABELS, '{"verdict":"not yes"}'],
  [LABELS, '{"verdict":"yes or no"}'],
  [LABELS, '{"verdict":"yes/no"}'],
  [LABELS, "Verdict: yes\nVerdict: no"],
  [LABELS, "Verdict: not yes"],
  [LABELS, "The verdict is not yes."],
  [LABELS, "Verdict: yes?"],
  [LABELS, "Verdict: yes or no"],
  [NUMBER, "Score: 7 or 8"],
  [NUMBER, "Score: 7-8"],
  [NUMBER, "7/5"],
  [NUMBER, "Score: 70%"],
  [NUMBER, "Score: 7 out of 5"],
  [NUMBER, "Score: 11"],
  [NUMBER, '{"score":7,"rating":3}'],
  [NUMBER, '{"score":7} {"score":8}'],
  [NUMBER, "I gave 7 first, then 8."],
  [LABELS, "I would say yes if it were no."],
  [LABELS, "The verdict would be yes, but no."],
  [LABELS, "<think>Verdict: yes"],
  [LABELS, "Answer: yes\nIs this a yes? Verdict: unknown"],
  [SUPPORTED, "Verdict: supported or not supported"],
  [CORRECT, "Verdict: incorrect or correct"],
  [LABELS, '{"verdict":"yes","Verdict":"no"}'],
  [LABELS, "Verdict: maybe"],
  [LABELS, '{"verdict":["yes","no"]}'],
  [NUMBER, "Score: 7\nScore: 8"],
  [LABELS, 'The reply says "Verdict: yes". I do not know.'],
  [LABELS, "Verdict: yes\n\nBut on reflection I am not sure."],
  [NUMBER, '{"verdict":"7,5"}'],
  [NUMBER, '{"verdict":"about 7"}'],
  [LABELS, "Verdict:"],
  [LABELS, "Verdict: no\n\nyes"],
  [GRADES, "Verdict: A or B"],
  [LABELS, "Verdict: <one of: no | partly | yes>"],
  [LABELS, '{"verdict": true, "final_verdict": "no"}'],
  [LABELS, '{"verdict": "yes" "no"}'],
  [LABELS, "Verdict: yes, no"],
  [LABELS, "yes\nno"],
  [NUMBER, "8\n7"],
])("%j: %j gives no judgement", (menu, reply) => {
  expect(readJudgement(menu, reply)).toMatchObject({ ok: false, error: expect.any(String) });
});

test.each([
  [["A", "A-", "A+"], '{"verdict":"A-"}', "A-"],
  [["A", "A-", "A+"], '{"verdict":"**A+**"}', "A+"],
  [["good", "good."], '{"verdict":"good."}', "good."],
  [["Yes", "yes"], '{"verdict":"yes"}', "yes"],
  [["1", "2"], '{"verdict":2}', "2"],
])("of the similar labels %j, %j is %j", (labels, reply, value) => {
  expect(readJudgement({ kind: "label", labels }, reply)).toMatchObject({ value });
});

test("two labels that differ only in typography are not guessed", () => {
  expect(readJudgement({ kind: "label", labels: ["Yes", "yes"] }, '{"verdict":"YES"}').ok).toBe(false);
});

test("the echoed form of the reply alone is not a judgement, and prose gives no scores by id", () => {
  expect(readJudgement(LABELS, askedMessages("", LABELS)[0]?.content?.toString() ?? "").ok).toBe(false);
  expect(readJudgement(SCORES, "Score: 7").ok).toBe(false);
});

test.each(["Score: 7\n", "7 out of 10 ", '"score": ', "**", "(((", "Verdict: ", '{"rating": 7} ', "{'grade': "])(
  "a reply of repeated %j is read in bounded work",
  (piece) => {
    expect(typeof readJudgement(NUMBER, piece.repeat(20_000)).ok).toBe("boolean");
  },
);
