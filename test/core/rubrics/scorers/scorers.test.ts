import { runRollout, scripted } from "rollcall/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { dataset } from "../../../../src/core/environments/dataset.ts";
import { SingleTurnEnv } from "../../../../src/core/environments/environment.ts";
import { NoScoreError } from "../../../../src/core/rubrics/score-value.ts";
import { SCORER_NAMES, scorers } from "../../../../src/core/rubrics/scorers/scorers.ts";

type Name = (typeof SCORER_NAMES)[number];
type Options = Readonly<Record<string, unknown>>;

const GOLDEN: [Name, string, string, number, Options?][] = [
  ["exact", " yes ", "yes", 1],
  ["exact", "Yes", "yes", 0],
  ["exact", "Yes!", "yes", 1, { ignore_case: true, ignore_punctuation: true }],
  ["exact", "the  answer", "answer", 1, { ignore_articles: true }],
  ["exact", "ﬁne", "fine", 1, { normalize_unicode: true }],
  ["exact", "ﬁne", "fine", 0],
  ["includes", "it is 42, I think", "42", 1],
  ["includes", "it is 41", "42", 0],
  ["starts_with", "yes, sure", "yes", 1],
  ["starts_with", "oh yes", "yes", 0],
  ["one_of", "y", '["yes","y",1]', 1],
  ["one_of", "1", '["yes","y",1]', 1],
  ["one_of", "no", '["yes","y"]', 0],
  ["regex", "order 66", "\\d{2}", 1],
  ["regex", "order", "\\d", 0],
  ["regex", "ab", "a", 0, { full: true }],
  ["regex", "ORDER 66", "unused", 1, { pattern: "^order \\d+$", ignore_case: true }],
  ["regex", "a\nb", "unused", 1, { pattern: "a.b", dot_all: true }],
  ["regex", "a\nb", "unused", 1, { pattern: "^b$", multiline: true }],
  ["f1", "the cat sat", "the cat sat down", 0.857143],
  ["f1", "The cat, sat.", "the CAT sat", 1],
  ["f1", "a a a", "a", 0.5],
  ["f1", "the cat", "a cat", 1, { ignore_articles: true }],
  ["f1", "", "cat", 0],
  ["f1", "", "", 1],
  ["levenshtein", "kitten", "sitting", 0.571429],
  ["levenshtein", "", "", 1],
  ["levenshtein", "", "abc", 0],
  ["levenshtein", "ABC", "abc", 1, { ignore_case: true }],
  ["rouge", "the cat sat", "the cat sat down", 0.857143],
  ["rouge", "the cat sat", "the cat sat down", 1, { measure: "precision" }],
  ["rouge", "the cat sat", "the cat sat down", 0.75, { measure: "recall" }],
  ["rouge", "sat cat the", "the cat sat", 0.333333],
  ["rouge", "sat cat the", "the cat sat", 1, { n: 1 }],
  ["rouge", "the cat sat", "the cat sat down", 0.8, { n: 2 }],
  ["rouge", "the cat", "the cat sat down", 0, { n: 3 }],
  ["bleu", "the cat sat on the mat", "the cat sat on the mat", 1],
  ["bleu", "the cat sat down there", "the cat sat down", 0.752121],
  ["bleu", "the cat sat down there", "the cat sat down", 0.66874, { smoothing: "none" }],
  ["bleu", "the cat sat", "the cat sat down", 0.716531],
  ["bleu", "the the the the the the the", "the cat is on the mat", 0.285714, { max_n: 1 }],
  ["bleu", "dog", "the cat", 0],
  ["gleu", "the cat sat", "the cat sat down", 0.6],
  ["gleu", "the cat sat", "the cat sat", 1],
  ["gleu", "dog", "cat", 0],
  // Values of nltk 3, without its WordNet stage.
  [
    "meteor",
    "It is a guide to action which ensures that the military always obeys the commands of the party",
    "It is a guide to action that ensures that the military will forever heed Party commands",
    0.694444,
  ],
  [
    "meteor",
    "It is to insure the troops forever hearing the activity guidebook that party direct",
    "It is the guiding principle which guarantees the military forces always being under the command of the Party",
    0.211364,
  ],
  ["meteor", "on the mat sat the cat", "the cat sat on the mat", 0.5],
  ["meteor", "the cat was sat on the mat", "the cat sat on the mat", 0.965392],
  ["meteor", "The dogs were running happily.", "a dog runs happily in the parks", 0.464154],
  ["meteor", "connected connections", "connecting the connection", 0.344828],
  ["meteor", "the the the", "the cat", 0.238095],
  ["meteor", "the cat sat", "the cat sat down", 0.8, { alpha: 0.5, beta: 1, gamma: 0.2 }],
  // Six words in one chunk: 1 − 0.5 / 6³. One word is a chunk of its own.
  ["meteor", "the cat sat on the mat", "The cat sat on the mat!", 1 - 0.5 / 216],
  ["meteor", "Paris", "Paris", 0.5],
  ["meteor", "car", "automobile", 0],
  ["meteor", "", "", 1],
  ["json_schema", '{"a":1}', '{"required":["a"]}', 1],
  ["json_schema", '{"b":1}', '{"required":["a"]}', 0],
  ["json_schema", "not json", "{}", 0],
  ["json_schema", '```json\n{"a":1}\n```', "{}", 1],
  ["json_schema", '{"a":1}', "unused", 1, { schema: { properties: { a: { type: "integer" } } } }],
  ["json_schema", '{"a":"1"}', "unused", 0, { schema: { properties: { a: { type: "integer" } } } }],
  ["json_diff", '{"a":1,"b":"x"}', '{"b":"x","a":1}', 1],
  ["json_diff", '{"a":10}', '{"a":12}', 0.909091],
  ["json_diff", '{"a":"kitten"}', '{"a":"sitting"}', 0.571429],
  ["json_diff", '{"a":1}', '{"a":1,"b":2}', 0.5],
  ["json_diff", "[1,2]", "[1,2,3,4]", 0.5],
  ["json_diff", "{}", "{}", 1],
  ["json_diff", "1", '"1"', 0],
  ["json_diff", '{"__proto__":1}', "{}", 0],
  ["json_diff", "oops", "1", 0],
  ["json_diff", '{"a":1.0}', '{"a":1}', 1],
  ["one_of", "1e21", "[1e21]", 1],
  ["one_of", "18.50", "[18.50]", 1],
  ["one_of", "18.5", "[18.50]", 1],
  ["one_of", "18.500", "[18.50]", 0],
  ["one_of", "9007199254740993", "[9007199254740993]", 1],
  ["json_schema", "9007199254740993.5", '{"type":"number"}', 0],
  ["json_schema", "9007199254740993", '{"multipleOf":3}', 0],
  ["json_schema", "[1e1001]", '{"type":"array"}', 0],
  ["json_schema", "9007199254740993", '{"type":"integer"}', 1],
  ["list_contains", '["9007199254740993"]', "[9007199254740993]", 0],
  ["list_contains", '["9007199254740993"]', "[9007199254740993]", 0, { pairing: "exact" }],
  ["list_contains", "[9007199254740993]", "[9007199254740993]", 1, { pairing: "exact" }],
  ["json_diff", '{"a":9007199254740993}', '{"a":9007199254740993}', 1],
  ["json_diff", '{"a":9007199254740992}', '{"a":9007199254740993}', 0],
  ["json_diff", '{"a":9007199254740993,"b":1}', '{"a":9007199254740992,"b":1}', 0.5],
  ["json_diff", "[9.007199254740993e15, -9007199254740993.0]", "[9007199254740993, -9007199254740993]", 1],
  ["json_diff", "12345678901234567890123", "12345678901234567890124", 0],
  ["json_diff", '"9007199254740993"', "9007199254740993", 0],
  ["json_diff", "1e400", "1e401", 0],
  ["json_diff", "1e400", "10e399", 1],
  ["list_contains", "[9007199254740992]", "[9007199254740993]", 0, { pairing: "exact" }],
  ["list_contains", "[9007199254740993.0]", "[9007199254740993]", 1, { pairing: "exact" }],
  ["list_contains", "[9007199254740992]", "[9007199254740993]", 0],
  ["list_contains", "[9007199254740992]", "[9007199254740994]", 0],
  ["list_contains", "[1, 12345678901234567890124]", "[12345678901234567890123, 1]", 0.5],
  ["list_contains", '["9007199254740992"]', "[9007199254740993]", 0],
  ["list_contains", '[{"id":9007199254740992}]', '[{"id":9007199254740993}]', 0],
  ["list_contains", '[{"id":9007199254740993,"n":1}]', '[{"n":1,"id":9007199254740993}]', 1],
  ["list_contains", "[-9007199254740993.0, 9007199254740994]", "[9007199254740994, -9007199254740993]", 1],
  ["json_diff", "9007199254740994", "9007199254740996", 0],
  ["one_of", "9007199254740993", "[1, 9007199254740993]", 1],
  ["one_of", "9007199254740992", "[1, 9007199254740993]", 0],
  ["json_schema", "9007199254740993", '{"const":9007199254740993}', 1],
  ["json_schema", "9007199254740992", '{"const":9007199254740993}', 0],
  ["json_schema", "9007199254740993", '{"const":9007199254740992}', 0],
  ["json_schema", '{"n":9007199254740993.0}', '{"enum":[{"n":5},{"n":9007199254740993}]}', 1],
  ["json_schema", "9007199254740993", '{"maximum":9007199254740992}', 0],
  ["json_schema", "9007199254740993", '{"exclusiveMaximum":9007199254740993}', 0],
  ["json_schema", "9007199254740993", '{"minimum":9007199254740994}', 0],
  ["json_schema", "9007199254740993", '{"type":"integer","minimum":0,"exclusiveMinimum":9007199254740992}', 1],
  ["json_schema", "-12345678901234567890123", '{"maximum":-12345678901234567890122,"type":"integer"}', 1],
  ["json_schema", "-12345678901234567890123", '{"minimum":-12345678901234567890122}', 0],
  ["json_schema", "[9007199254740993,9007199254740992]", '{"uniqueItems":true}', 1],
  ["json_schema", "[9007199254740993,9007199254740993.0]", '{"uniqueItems":true}', 0],
  ["json_schema", "1e400", '{"type":"integer","minimum":1e399}', 1],
  ["json_schema", "9223372036854775808", "unused", 0, { schema: { maximum: 9007199254740991 } }],
  ["json_schema", "9223372036854775808", "unused", 1, { schema: { type: "integer", multipleOf: 1 } }],
  ["list_contains", '["b","a"]', '["a","b"]', 1],
  ["list_contains", '["a","b","c"]', '["a","b"]', 0.666667],
  ["list_contains", '["a","b","c"]', '["a","b"]', 1, { allow_extra: true }],
  ["list_contains", '["kitten"]', '["sitting"]', 0.571429],
  ["list_contains", '["kitten"]', '["sitting"]', 0, { pairing: "exact" }],
  ["list_contains", "[]", "[]", 1],
  ["list_contains", "[]", '["a"]', 0],
  ["list_contains", "no list", '["a"]', 0],
  ["choice", "B", "B", 1],
  ["choice", "(b)", "A", 0],
  ["choice", "**B**", "b", 1],
  ["choice", "B) because A is wrong", "(B)", 1],
  ["choice", "A is wrong and so is C. The answer is B.", "B", 1],
  ["choice", "Answer: (C)", "C", 1],
  ["choice", "I think \\boxed{\\text{D}}", "D", 1],
  ["choice", "Between (A) and (B), it is (B) that holds", "B", 1],
  ["choice", "Thinking about it,\nA\nC", "C", 1],
  ["choice", "A good question.", "A", 0],
  ["choice", "E", "E", 1, { choices: "ABCDE" }],
  ["math", "so \\boxed{\\frac12}", "#### 0.5", 1],
  ["math", "it is 0.5", "1/2", 1],
  ["math", "it is 0.5", "1/2", 0, { strict: true }],
  ["math", "\\boxed{5\\%}", "0.05", 1, { percent_is_ratio: true }],
];

test.each<[Name, string, string, number, Options?]>(GOLDEN)(
  "%s of %j and %j is %d",
  (name, output, reference, score, options = {}) => {
    expect(scorers[name].score(output, reference, options)).toBeCloseTo(score, 6);
  },
);

test.each<[Name, string, Options?]>([
  ["includes", ""],
  ["starts_with", "!", { ignore_punctuation: true }],
  ["one_of", "yes"],
  ["one_of", '{"a":1}'],
  ["regex", "("],
  ["regex", ""],
  ["numeric", "twelve"],
  ["numeric", ""],
  ["numeric", "\u200b"],
  ["numeric_diff", "1 or 2"],
  ["json_schema", "["],
  ["json_schema", "[]"],
  ["json_schema", '{"$ref":"#/nowhere"}'],
  ["json_diff", "{"],
  // The result would need arithmetic with whole numbers or fractions.
  ["json_schema", '{"multipleOf":9007199254740993}'],
  ["list_contains", '"a"'],
  ["list_contains", JSON.stringify(Array.from({ length: 201 }, String))],
  ["choice", "Z"],
  ["choice", "AB"],
  ["math", ""],
  ["levenshtein", "x".repeat(50_001)],
  ["rouge", "x ".repeat(10_001)],
])("%s gives no score for the reference %j", (name, reference, options = {}) => {
  expect(() => scorers[name].score('["a"]', reference, options)).toThrow(NoScoreError);
});

test.each<[Name, Options]>([
  ["exact", { ignorecase: true }],
  ["regex", { pattern: "(" }],
  ["regex", { pattern: "(?=a)" }],
  ["regex", { pattern: "(a)\\1" }],
  ["rouge", { n: 6 }],
  ["meteor", { alpha: 1.1 }],
  ["numeric", { absolute: -1 }],
  ["choice", { choices: "abc" }],
])("%s refuses the options %j", (name, options) => {
  expect(() => scorers[name].score("a", "a", options)).toThrow(z.ZodError);
});

test.each([
  ["9007199254740991", "9007199254740990"],
  ["9007199254740992", "9007199254740993"],
  ["9007199254740993", "9007199254740992"],
  ["-9007199254740993.0", "-9007199254740992"],
  ["it is 12,345,678,901,234,567,890,124", "12345678901234567890123"],
  ["18446744073709551615", "18446744073709551616"],
])("numeric_diff of whole numbers with the same double, %j and %j, is below 1", (output, reference) => {
  const score = scorers.numeric_diff.score(output, reference);
  expect(score).toBeLessThan(1);
  expect(score).toBeGreaterThan(0.999);
  expect(scorers.numeric_diff.score(reference, reference)).toBe(1);
});

test.each([
  ["9007199254740991", "9007199254740990"],
  ["-9007199254740991", "-9007199254740990"],
  ["18446744073709551616", "18446744073709555712"],
  ["[9007199254740991]", "[9007199254740990]"],
  ['{"a":1.0000000000000002}', '{"a":1}'],
])("json_diff of different %j and %j is below 1", (output, reference) => {
  expect(scorers.json_diff.score(output, reference)).toBeLessThan(1);
  expect(scorers.json_diff.score(reference, reference)).toBe(1);
});

describe("an output above the limits scores 0", () => {
  const long = "ab ".repeat(20_000);
  test.each<[Name, string]>([
    ["levenshtein", "ab"],
    ["rouge", "ab"],
    ["f1", "ab"],
    ["bleu", "ab"],
    ["gleu", "ab"],
    ["meteor", "ab"],
    ["json_diff", '"ab"'],
    ["list_contains", '["ab"]'],
  ])("%s of an output of 60,000 characters is 0", (name, reference) => {
    expect(scorers[name].score(long, reference)).toBe(0);
  });

  test.each<Name>(["json_schema", "json_diff", "list_contains"])("%s of JSON nested 20,000 deep is 0", (name) => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const reference = name === "json_schema" ? "{}" : "[[1]]";
    expect(scorers[name].score(deep, reference)).toBe(0);
  });

  test("a pattern that takes exponential time in other engines terminates", () => {
    expect(scorers.regex.score(`${"a".repeat(20_000)}!`, "^(a+)+$")).toBe(0);
  });
});

test("the best pairing is found where a greedy choice fails", () => {
  // "baaa" is the best partner of both; "aaaa" must leave it to "bbaa".
  const said = JSON.stringify(["baaa", "aacc"]);
  expect(scorers.list_contains.score(said, '["aaaa","bbaa"]')).toBeCloseTo(0.625, 6);
});

test("a scorer is a reward function over the parser's answer and the row's", async () => {
  const environment = new SingleTurnEnv({
    dataset: dataset(z.object({ question: z.string(), answer: z.string() }), "uploaded"),
    rubric: {
      rewards: {
        f1: scorers.f1(),
        near: { fn: scorers.levenshtein({ ignore_case: true }), weight: 0.5 },
      },
      metrics: { exact: scorers.exact(), number: scorers.numeric() },
    },
  });
  const task = { question: "Which?", answer: "the cat" };
  const report = await runRollout(environment, { task, model: scripted(["The Cat"]) });
  expect(report.metrics).toMatchObject({ f1: 1, near: 1, exact: 0, number: null });
  expect(report.reward).toBe(1.5);
  expect(report.scoring_errors).toMatchObject([{ function: "number" }]);
});

test("every scorer name has a scorer", () => {
  expect(Object.keys(scorers)).toEqual([...SCORER_NAMES]);
});

const DRAFT = "The answer is A? No, 7.";
const THOUGHT = [
  `<think>${DRAFT}</think>\n`,
  `${DRAFT}\n</think>\n\n`,
  `<THINKING>${DRAFT} <think>A</think> 7</THINKING>`,
  `[THINK]${DRAFT}[/THINK]`,
  `<|channel|>analysis<|message|>${DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>`,
  `◁think▷${DRAFT}◁/think▷`,
  `<think>${DRAFT}</think><reasoning>${DRAFT}</reasoning>`,
];
/** A right output for each scorer. */
const RIGHT: Readonly<Record<Name, readonly [output: string, reference: string]>> = {
  exact: ["C", "C"],
  includes: ["it is C", "C"],
  starts_with: ["C it is", "C"],
  one_of: ["C", '["C", "c"]'],
  regex: ["C 12", "^C \\d+$"],
  numeric: ["12 ducks", "12"],
  numeric_diff: ["12", "12"],
  f1: ["twelve ducks", "twelve ducks"],
  levenshtein: ["C", "C"],
  rouge: ["twelve ducks", "twelve ducks"],
  bleu: ["twelve ducks", "twelve ducks"],
  gleu: ["twelve ducks", "twelve ducks"],
  meteor: ["twelve ducks", "twelve ducks"],
  json_schema: ['{"a": 1}', '{"required": ["a"]}'],
  json_diff: ['{"a": 1}', '{"a": 1}'],
  list_contains: ['["a"]', '["a"]'],
  choice: ["C", "C"],
  math: ["\\boxed{12}", "12"],
};

test.each(SCORER_NAMES)("%s ignores thoughts before an answer", (name) => {
  const [output, reference] = RIGHT[name];
  const alone = scorers[name].score(output, reference);
  for (const thought of THOUGHT) expect(scorers[name].score(`${thought}${output}`, reference)).toBe(alone);
});

test.each([
  ["choice", "<think>Answer: A</think>\nC", "A"],
  ["choice", "Answer: A?\n</think>\nC", "A"],
  ["choice", "<think>Answer: A", "A"],
  ["includes", "<think>Paris</think>Rome", "Paris"],
  ["numeric", "<think>7</think>I do not know.", "7"],
  ["math", "<thinking>\\boxed{7}</thinking>\\boxed{8}", "7"],
  ["json_schema", '[THINK]{"a": 1}[/THINK]no', "{}"],
  ["regex", "<think>Paris</think>", "Paris"],
] as const)("a draft in the thoughts does not score: %s of %j for %s", (name, output, reference) => {
  expect(scorers[name].score(output, reference)).toBe(0);
});
