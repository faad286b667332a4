import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../src/contract/json.ts";
import { type SCORER_NAMES, scorers } from "../../../src/core/rubrics/scorers/scorers.ts";
import { scoreWork, scoringGroupWork, spendWork, WORK, WORK_LIMITS } from "../../../src/core/rubrics/work.ts";

type Name = (typeof SCORER_NAMES)[number];
type Options = Readonly<Record<string, unknown>>;

const MIB = 1024 * 1024;
const json = (value: unknown) => JSON.stringify(value);
const many = (count: number, of: (at: number) => unknown) => json(Array.from({ length: count }, (_, at) => of(at)));
/** 60 schemas, each of which uses the next one twice: 2^60 visits. */
const doubled = json({
  $ref: "#/$defs/n0",
  $defs: {
    ...Object.fromEntries(
      Array.from({ length: 60 }, (_, at): [string, JsonObject] => {
        const next = { $ref: `#/$defs/n${at + 1}` };
        return [`n${at}`, { allOf: [next, next] }];
      }),
    ),
    n60: { type: "string" },
  },
});

describe("a score that would exceed its work budget is not computed", () => {
  test.each<[string, Name, string, string, Options?]>([
    ["a pattern of 3,000 instructions on 1 MB", "regex", "a".repeat(MIB), "(?:a?){1000}a{1000}$"],
    ["a pattern of 100,000 ways", "regex", "w", many(100_000, (at) => `w${at}`).replaceAll(",", "|")],
    ["a pattern that repeats much", "regex", "w", "(?:[a-z]{1000})".repeat(11)],
    ["a pattern of wide ranges", "regex", "w", `[${"!-\\x{1e942}".repeat(100)}]`],
    ["a schema of 2^60 visits", "json_schema", '"a"', doubled],
    ["20,000 objects that must differ", "json_schema", many(20_000, (id) => ({ id })), '{"uniqueItems":true}'],
    [
      "a long enumeration for many items",
      "json_schema",
      many(5000, () => "z"),
      json({ items: { enum: Array.from({ length: 5000 }, String) } }),
    ],
    [
      "long lists of names for many items",
      "json_schema",
      many(5000, () => ({})),
      json({ items: { required: Array.from({ length: 5000 }, String) } }),
    ],
    ["millions of empty lists", "json_schema", `[${"[],".repeat(MIB)}[]]`, '{"items":{}}'],
    ["60,000 numbers that no double holds", "json_schema", `[${"1e400,".repeat(60_000)}1]`, "{}"],
    ["as many in a list of what may be said", "one_of", "1", `[${"1e400,".repeat(60_000)}1]`],
    ["two texts of 50,000 characters", "levenshtein", "ab".repeat(25_000), "ba".repeat(25_000)],
    [
      "ligatures that are 18 letters each",
      "levenshtein",
      "\ufdfa".repeat(50_000),
      "\ufdfa".repeat(40_000),
      { normalize_unicode: true },
    ],
    ["marks that are to be ordered", "exact", `a${"\u0301\u0323".repeat(MIB / 2)}`, "a", { normalize_unicode: true }],
    [
      "a text in the middle of which one letter differs",
      "includes",
      "a".repeat(2 * MIB),
      `${"a".repeat(MIB / 2)}b${"a".repeat(MIB / 2)}`,
    ],
    ["long texts in JSON", "json_diff", json(["x".repeat(49_000)]), json(["y".repeat(49_000)])],
  ])("%s", (_what, name, output, reference, options = {}) => {
    const error = { name: "WorkBudgetError", unscored: "scorer" };
    expect(() => scorers[name].score(output, reference, options)).toThrow(expect.objectContaining(error));
  });
});

test.each<[string, Name, string, string, number, Options?]>([
  ["a pattern on 1 MB", "regex", `${"a".repeat(MIB)}b`, "a+b", 1],
  ["2,000 rows", "json_schema", many(2000, (id) => ({ id })), '{"items":{"required":["id"]}}', 1],
  ["20,000 numbers", "json_schema", many(20_000, (at) => at), '{"items":{"type":"number"}}', 1],
  ["300 objects that differ", "json_schema", many(300, (id) => ({ id })), '{"uniqueItems":true}', 1],
  [
    "lists without repetitions in 200 rows",
    "json_schema",
    many(200, (id) => [id, "a"]),
    '{"items":{"uniqueItems":true}}',
    1,
  ],
  ["two texts of 20,000 characters", "levenshtein", "a".repeat(20_000), "a".repeat(20_000), 1],
  ["a word in 4 MB", "includes", `${"b".repeat(4 * MIB)}word`, "word", 1],
  ["a letter among 4 MB of letters", "choice", "(A) ".repeat(MIB), "A", 1],
  ["the last of a million numbers", "numeric", "7 ".repeat(MIB), "7", 1],
])("%s has a score", (_what, name, output, reference, score, options = {}) => {
  expect(scorers[name].score(output, reference, options)).toBe(score);
});

test("an error names what was too much, and of which budget", () => {
  const score = () => scorers.levenshtein.score("a".repeat(50_000), "b".repeat(50_000));
  expect(score).toThrow(
    "the edit distance of 50,000 with 50,000 characters would exceed the limit of 6,000,000 steps of work for one score",
  );
  const long = () => scorers.regex.score("a", "a".repeat(5000));
  expect(long).toThrow("the pattern has 5,000 characters, and the limit is 4,000");
});

test("an option that no score could be computed with is refused", () => {
  const parse = (name: "regex" | "json_schema", options: unknown) => scorers[name].options.safeParse(options).success;
  expect(parse("regex", { pattern: "a{2}" })).toBe(true);
  expect(parse("regex", { pattern: "a|".repeat(3000) })).toBe(false);
  expect(parse("regex", { pattern: "" })).toBe(false);
  expect(parse("json_schema", { schema: { type: "string" } })).toBe(true);
  expect(parse("json_schema", { schema: { pattern: "(?=a)" } })).toBe(false);
});

test("the work of texts parsed as mathematics is counted by their length", () => {
  const work = scoringGroupWork();
  expect(scorers.math.score("5", `1${"0".repeat(1000)}`, {}, { [WORK]: work })).toBe(0);
  expect(work.steps).toBeGreaterThan(20 * 1000);
});

test("the scores of a scoring group share one budget, and each has one of its own", () => {
  const args = { [WORK]: scoringGroupWork() };
  const score = () => spendWork(args, WORK_LIMITS.scoreSteps, "comparing");
  for (let at = 0; at < Math.floor(WORK_LIMITS.scoringGroupSteps / WORK_LIMITS.scoreSteps); at += 1) score();
  expect(score).toThrow("for the scores of one scoring group");
  expect(() => scoreWork().spend(WORK_LIMITS.scoreSteps + 1, "comparing")).toThrow("one score");
});
