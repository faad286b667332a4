import { expect, test } from "vitest";
import { askedMessages, type Menu, readJudgement } from "../../../src/core/rubrics/judgement.ts";

const LABELS: Menu = { kind: "label", labels: ["no", "partly", "yes"] };
const NUMBER: Menu = { kind: "number", range: [0, 10] };
const SCORES: Menu = { kind: "scores", ids: ["a", "b"], range: [0, 10] };

test.each([
  ["a line break in the reason", '{"reason": "first\nsecond", "verdict": "yes"}'],
  ["empty lines in the reason", '{"reason": "first\n\n\r\nsecond\n", "verdict": "yes"}'],
  ["a tab in the reason", '{"reason": "1\t2", "verdict": "yes"}'],
  ["another control character", '{"reason": "bell \u0007", "verdict": "yes"}'],
  ["LaTeX", String.raw`{"reason": "\(a\) is \[\sqrt{4}\], \cdot, \pm, \{2\}", "verdict": "yes"}`],
  ["LaTeX like an escape", String.raw`{"reason": "\frac{1}{2} \times \beta \neq \rho", "verdict": "yes"}`],
  ["LaTeX like a code point", String.raw`{"reason": "\underline{x}, \upsilon, \cup", "verdict": "yes"}`],
  ["a Windows path", String.raw`{"reason": "in C:\users\x", "verdict": "yes"}`],
  ["a comma at the end", '{"reason": "so", "verdict": "yes",}'],
  ["a comma too many in a list", '{"facts": ["a", "b",], "verdict": "yes"}'],
  ["single quotes", "{'reason': 'so', 'verdict': 'yes'}"],
  ["single quotes around double ones", `{'reason': 'it says "4"', 'verdict': 'yes'}`],
  ["an apostrophe", `{'reason': "it's so", 'verdict': 'yes'}`],
  ["an escaped apostrophe", String.raw`{'reason': 'it\'s so', 'verdict': 'yes'}`],
  ["typographic quotes", "{“reason”: “so”, “verdict”: “yes”}"],
  ["no quotes at keys", '{reason: "so", verdict: "yes"}'],
  ["no quotes at the value", '{"reason": "so", "verdict": yes}'],
  ["Python's values", "{'reason': None, 'sure': True, 'verdict': 'yes'}"],
  ["comments", '{"reason": "so", // it is\n "verdict": "yes" /* sure */}'],
  ["a comment before the key", '{"reason": "so", /* sure */ "verdict": "yes"}'],
  ["a comma that is missing", '{"reason": "so"\n "verdict": "yes"}'],
  ["a comma that is missing on a line", '{"reason": "so" "verdict": "yes"}'],
  ["quotes in the reason", '{"reason": "it says "4" twice", "verdict": "yes"}'],
  ["quotes and a comma in the reason", '{"reason": "it says "4", twice", "verdict": "yes"}'],
  ["one quote in the reason", '{"reason": "a 5" nail, fine", "verdict": "yes"}'],
  ["three quotes", '{"reason": """it says "4", and so on""", "verdict": "yes"}'],
  ["the verdict first", '{"verdict": "yes", "reason": "so\nit is"}'],
  ["braces in the reason", '{"reason": "the set\n{1, 2} and {3", "verdict": "yes"}'],
  ["a word of the key in the reason", '{"reason": "my verdict: it is\nfine", "verdict": "yes"}'],
  ["a fence", "```json\n{'reason': 'so', 'verdict': 'yes'}\n```"],
  ["prose around", "I weigh {this}. {'reason': 'so', 'verdict': 'yes',} Done, I hope."],
  ["thoughts before", "{'verdict': 'no'}?\n</think>\n{'reason': 'so', 'verdict': 'yes'}"],
  ["an echo of the form before", `${askedMessages("", LABELS)[0]?.content}\n{'reason': 'so', 'verdict': 'yes'}`],
  ["no closing brace", '{"reason": "it is", "verdict": "yes"'],
  ["no closing brace in a fence", '```json\n{"reason": "it is", "verdict": "yes"\n```'],
  ["a bracket in place of the brace", '{"reason": "it is", "verdict": "yes"]'],
  ["said twice alike", "{'verdict': 'yes'} and so {'verdict': 'yes',}"],
])("almost valid JSON is read: %s", (_what, reply) => {
  expect(readJudgement(LABELS, reply)).toMatchObject({ ok: true, value: "yes" });
});

test.each([
  ["prose", "I would say yes"],
  ["a key in prose", 'It says "verdict": "yes".'],
  ["an object without an opening brace", '"reason": "so", "verdict": "yes"}'],
  ["braces without a key", "{yes}"],
  ["a key with words before it", "{ my verdict: yes }"],
  ["a sentence in braces", "{I think the verdict is yes}"],
  ["two that differ", "{'verdict': 'no'} or rather {'verdict': 'yes'}"],
  ["two in one object", "{'verdict': 'no', 'verdict': 'yes'}"],
  ["two that differ, one of them JSON", `{"verdict": "no"} or rather {'verdict': 'yes'}`],
  ["one in the reason of another", '{"reason": "it says {"verdict": "no"} here", "verdict": "yes"}'],
  ["one that is quoted in a reason without end", '{"reason": "I would say "verdict": "yes" but'],
  ["one that is quoted in a reason", '{"reason": "I would say "verdict": "yes" but I do not"}'],
  ["one of several", "{'verdict': 'yes' | 'no'}"],
  ["a list", "{'verdict': ['yes']}"],
  ["a call", '{"verdict": not("yes")}'],
  ["half a label", '{"reason": "so", "verdict": "part'],
  ["a label that is not closed", '{"reason": "so", "verdict": "yes'],
  ["an object that goes on", '{"verdict": "yes", "reason": "but on second tho'],
  ["an object that goes on behind a comma", '{"verdict": "yes",'],
  ["no value", '{"reason": "so", "verdict":'],
  ["prose behind an object that never closes", '{"reason": "so", "verdict": "yes" I hope this helps'],
  ["a label off the menu", "{'verdict': 'maybe',}"],
])("there is no judgement in %s", (_what, reply) => {
  expect(readJudgement(LABELS, reply)).toMatchObject({ ok: false, error: expect.any(String) });
});

test.each([
  ["{'verdict': 7,}", 7],
  ["{'verdict': '7'}", 7],
  ['{"reason": "a\nb", "verdict": 7/10}', 7],
  ['{"reason": "7/10, so", "verdict": +7}', 7],
  ['```json\n{"reason": "so", "verdict": 7\n```', 7],
])("%j is a number", (reply, value) => {
  expect(readJudgement(NUMBER, reply)).toMatchObject({ ok: true, value });
});

test.each([
  ["a number that may have been cut off", '{"reason": "so", "verdict": 1'],
  ["a decimal comma", "{'verdict': 7,5}"],
  ["one of two numbers", "{'verdict': 7 or 8}"],
  ["a number in words", "{'verdict': seven}"],
])("%s is not a number", (_what, reply) => {
  expect(readJudgement(NUMBER, reply).ok).toBe(false);
});

test("scores in almost valid JSON are matched by id, and two scores for one id are none", () => {
  const near = "{'scores': [{'id': 'a', 'reason': 'x\ny', 'score': '3'}, {'id': 'b', 'score': 4,},]}";
  expect(readJudgement(SCORES, near)).toMatchObject({ ok: true, value: { a: 3, b: 4 } });
  const cut = '{"scores": [{"id": "a", "score": 3}, {"id": "b", "score": 4}]';
  expect(readJudgement(SCORES, cut)).toMatchObject({ ok: true, value: { a: 3, b: 4 } });
  const two = "{'scores': [{'id': 'a', 'score': 3, 'score': 5}, {'id': 'b', 'score': 4}]}";
  expect(readJudgement(SCORES, two).ok).toBe(false);
  const strict = '{"scores": [{"id": "a", "score": 3, "score": 5}, {"id": "b", "score": 4}]}';
  expect(readJudgement(SCORES, strict).ok).toBe(false);
});

test("an echoed form of scores does not make a judgement doubtful", () => {
  const said = '{"scores": [{"id": "a", "score": 3}, {"id": "b", "score": 4}]}';
  expect(readJudgement(SCORES, `${askedMessages("", SCORES)[0]?.content}\n${said}`)).toMatchObject({ ok: true });
});

test("the reason keeps its LaTeX if JSON has no escape of that letter", () => {
  const reply = String.raw`{"reason": "since \(x\) is \sqrt{4}", "verdict": "yes"}`;
  expect(readJudgement(LABELS, reply)).toMatchObject({ reason: String.raw`since \(x\) is \sqrt{4}` });
});

test.each([
  "{'verdict': ",
  "{'verdict': 'yes'} ",
  '{"verdict": "yes", "',
  "{\n\n\n\n\n",
  '{"a": [',
  "{a(",
  ", 'verdict': 'yes'",
  '"verdict": "a"\n',
  "{'",
  "```\n{",
])("a reply of repeated %j is read or given up after bounded work", (piece) => {
  const reply = `{'reason': ${piece.repeat(20_000)}`;
  // Without a bound it would take minutes, beyond any test's limit.
  expect(typeof readJudgement(LABELS, reply).ok).toBe("boolean");
});
