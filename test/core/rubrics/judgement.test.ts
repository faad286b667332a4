import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { cutMiddle, fenced } from "../../../src/core/rubrics/judge-rubric.ts";
import { askedMessages, type Menu, readJudgement } from "../../../src/core/rubrics/judgement.ts";

const LABELS: Menu = { kind: "label", labels: ["no", "yes"] };
const NUMBER: Menu = { kind: "number", range: [0, 10] };
const SCORES: Menu = { kind: "scores", ids: ["a", "b"], range: [0, 1] };

const YES = '{"reason": "it is", "verdict": "yes"}';

test.each([
  ["alone", YES],
  ["behind prose with braces of its own", `I weighed {this} and {"that": 1}. ${YES}`],
  ["in a code fence", `\`\`\`json\n${YES}\n\`\`\``],
  ["inside another object", `{"result": ${YES}}`],
  ["in other letters, spaces around it", '{"reason": "it is", "verdict": " YES "}'],
  ["said twice alike", `${YES} and so ${YES}`],
  ["behind a thought with a draft", `<think>{"verdict": "no"}?</think>${YES}`],
  ["behind a thought that the template began", `Is it {"verdict": "no"}? No.\n</think>\n\n${YES}`],
  ["behind a thought in brackets", `[THINK]{"verdict": "no"}[/THINK]${YES}`],
  ["behind nested thoughts in capitals", `<THINKING>{"verdict": "no"}<think>why</think> no</THINKING>${YES}`],
  [
    "in the final channel of harmony",
    `<|channel|>analysis<|message|>{"verdict": "no"}<|end|><|start|>assistant<|channel|>final<|message|>${YES}<|return|>`,
  ],
  ["behind thoughts that lost harmony's signs", `analysisSay {"verdict": "no"}?assistantfinal${YES}`],
  ["with a mark of thoughts in its reason", '{"reason": "the reply has no </think> tag", "verdict": "yes"}'],
  ["with half a thought in its reason", '{"reason": "after <think> comes\\nnothing", "verdict": "yes"}'],
  ["with braces and quotes in its reason", '{"reason": "a \\"}{\\" here", "verdict": "yes"}'],
  ["behind an echo of the form", `${askedMessages("", LABELS)[0]?.content} Fine: ${YES}`],
])("a judgement is found %s", (_where, reply) => {
  expect(readJudgement(LABELS, reply)).toMatchObject({ ok: true, value: "yes" });
});

test.each([
  ["nothing", ""],
  ["prose", "The answer is yes."],
  ["the form and no more", String(askedMessages("", LABELS)[0]?.content)],
  ["a label that is not on the menu", '{"verdict": "maybe"}'],
  ["a label that is no text", '{"verdict": ["yes"]}'],
  ["no label", '{"verdict": null}'],
  ["two that differ", `{"verdict": "no"} … ${YES}`],
  ["two that differ behind thoughts", `<think>{"verdict": "no"}</think>{"verdict": "no"} or ${YES}`],
  ["one in thoughts that never end", `<think>${YES}`],
  ["one in thoughts that nothing follows", `${YES}\n</think>`],
  ["one in a channel that is not final", `<|channel|>analysis<|message|>${YES}<|end|>`],
  ["one that is on the menu and one that is not", `${YES} {"verdict": "maybe"}`],
  ["the key twice in one object", '{"verdict": "no", "verdict": "yes"}'],
  ["half a thought", '{"reason": "it is'],
])("%s is not a judgement", (_what, reply) => {
  expect(readJudgement(LABELS, reply)).toMatchObject({ ok: false, error: expect.any(String) });
});

test("the reason is kept, and cut if it is long", () => {
  expect(readJudgement(LABELS, YES)).toMatchObject({ reason: "it is" });
  const long = readJudgement(LABELS, JSON.stringify({ reason: "x".repeat(5000), verdict: "no" }));
  expect(long.ok && long.reason?.length).toBe(2000);
  expect(readJudgement(LABELS, '{"verdict": "no"}')).toMatchObject({ ok: true, reason: null });
});

test("a label with other capitals is invalid if two labels differ only in capitals", () => {
  const menu: Menu = { kind: "label", labels: ["us", "US"] };
  expect(readJudgement(menu, '{"verdict": "US"}')).toMatchObject({ ok: true, value: "US" });
  expect(readJudgement(menu, '{"verdict": "Us"}')).toMatchObject({ ok: false });
});

test("labels that are numbers or booleans are compared as they are written", () => {
  expect(readJudgement({ kind: "label", labels: ["1", "2"] }, '{"verdict": 2}')).toMatchObject({
    value: "2",
  });
  expect(readJudgement({ kind: "label", labels: ["false", "true"] }, '{"verdict": true}')).toMatchObject({
    value: "true",
  });
});

test.each([0, 2.5, 10])("%d is a number within the range", (score) => {
  expect(readJudgement(NUMBER, JSON.stringify({ verdict: score }))).toMatchObject({ value: score });
});

test.each([
  -0.1,
  10.1,
  "10.1",
  "seven",
  "",
  " ",
  "7 or 8",
  "7/5",
  "11/10",
  "7/10/10",
  "7,5",
  "70%",
  "0x7",
  "NaN",
  null,
  true,
  [7],
])("%j is not a number within the range", (score) => {
  expect(readJudgement(NUMBER, JSON.stringify({ verdict: score })).ok).toBe(false);
});

test.each([
  ["7", 7],
  [" 7.50 ", 7.5],
  ["+7", 7],
  [".5", 0.5],
  ["1e1", 10],
  ["007", 7],
  ["7/10", 7],
  ["7.5 / 10", 7.5],
])("the text %j is the number %d", (text, score) => {
  expect(readJudgement(NUMBER, JSON.stringify({ reason: "so", verdict: text }))).toMatchObject({ value: score });
  const scores = [text, 10].map((given, at) => ({ id: "ab"[at], score: given }));
  const menu: Menu = { kind: "scores", ids: ["a", "b"], range: [0, 10] };
  expect(readJudgement(menu, JSON.stringify({ scores }))).toMatchObject({ value: { a: score, b: 10 } });
});

test("a fraction is invalid if the range ends at another number, and a number as text is a label as it is written", () => {
  expect(readJudgement(SCORES, '{"scores": [{"id": "a", "score": "7/10"}, {"id": "b", "score": 1}]}').ok).toBe(false);
  expect(readJudgement({ kind: "number", range: [0, 1] }, '{"verdict": "0.7/1"}')).toMatchObject({ value: 0.7 });
  expect(readJudgement({ kind: "label", labels: ["1/2", "2/2"] }, '{"verdict": "1/2"}')).toMatchObject({
    value: "1/2",
  });
});

test("scores are matched by id, whatever their order", () => {
  const scores = [
    { id: "b", reason: "better", score: 1 },
    { id: "a", score: 0 },
  ];
  expect(readJudgement(SCORES, JSON.stringify({ scores }))).toMatchObject({ value: { a: 0, b: 1 } });
});

test.each([
  ["a missing id", [{ id: "a", score: 0 }]],
  [
    "an id twice",
    [
      { id: "a", score: 0 },
      { id: "a", score: 1 },
    ],
  ],
  [
    "an id nobody has",
    [
      { id: "a", score: 0 },
      { id: "c", score: 1 },
    ],
  ],
  [
    "one more",
    [
      { id: "a", score: 0 },
      { id: "b", score: 1 },
      { id: "c", score: 1 },
    ],
  ],
  [
    "a score out of range",
    [
      { id: "a", score: 0 },
      { id: "b", score: 1.5 },
    ],
  ],
  ["no list", { a: 0, b: 1 }],
])("scores with %s are invalid", (_what, scores) => {
  expect(readJudgement(SCORES, JSON.stringify({ scores })).ok).toBe(false);
});

test("a text is the whole reply, and an empty reply is none", () => {
  expect(readJudgement({ kind: "text" }, " so ")).toMatchObject({ ok: true, value: " so " });
  expect(readJudgement({ kind: "text" }, " \n").ok).toBe(false);
  expect(askedMessages("Why?", { kind: "text" })).toEqual([{ role: "user", content: "Why?" }]);
});

test("a reply of only braces or quotes is given up after bounded work", () => {
  for (const hostile of ["{", '{"', '{"verdict":', "}{"]) {
    expect(readJudgement(LABELS, hostile.repeat(20_000)).ok).toBe(false);
  }
});

test("a reply with a hundred thousand opening thoughts is read in one pass", () => {
  const thoughts = "<think>".repeat(500_000);
  const menu = { kind: "label", labels: ["no", "yes"] } as const;
  expect(readJudgement(menu, `${thoughts}{"verdict": "no"}</think>{"verdict": "yes"}`)).toMatchObject({
    value: "yes",
  });
  expect(readJudgement(menu, `{"verdict": "yes"}${thoughts}`)).toMatchObject({ value: "yes" });
});

test("a fence is longer than any sequence of backticks inside it", () => {
  expect(fenced("plain")).toBe("```\nplain\n```");
  expect(fenced("a ````` b")).toBe("``````\na ````` b\n``````");
});

test("a cut never splits a character, and its length is reported", () => {
  expect(cutMiddle("short", 5)).toEqual({ text: "short", leftOut: 0 });
  const { text, leftOut } = cutMiddle("😀".repeat(10), 5);
  expect(text).toBe(`😀\n[… ${leftOut} characters left out …]\n😀`);
  expect(leftOut).toBe(16);
});

test("a reply of many thoughts that never end is read in one pass, and has no judgement", () => {
  const reply = `${"<think>".repeat(100_000)} {"reason": "so", "verdict": 4}`;
  expect(readJudgement({ kind: "number", range: [0, 5] }, reply).ok).toBe(false);
});

test("a reply that is a judgement as a whole is limited to the stored length", () => {
  const longest = "v".repeat(LIMITS.judgementCharacters);
  expect(readJudgement({ kind: "text" }, longest)).toMatchObject({ ok: true, value: longest });
  expect(readJudgement({ kind: "text" }, `${longest}v`)).toEqual({
    ok: false,
    error: `the reply is longer than ${LIMITS.judgementCharacters} characters`,
  });
});
