/** The filter language: the meaning of a text, printing and parsing, and the positions of errors. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type FilterTerm,
  FLAG_FIELDS,
  NUMBER_FIELDS,
  parseFilter,
  parseMeasure,
  parseSort,
  printFilter,
  printSort,
  ROLLOUT_SORTS,
  type Sorting,
} from "../../src/contract/filter.ts";

/** The printed form, or the place and the error. */
function read(text: string): string | readonly [number, string] {
  const parsed = parseFilter(text);
  return parsed.ok ? printFilter(parsed.terms) : [parsed.error.at, parsed.error.message];
}

test.each([
  ["", ""],
  ["  reward<0.5   stop:max_turns_reached ", "reward<0.5 stop:max_turns_reached"],
  ["reward:null", "reward:null"],
  ["reward:1|0|null", "reward:1|0|null"],
  ["reward>=1 turns>3 tokens>1000 latency>2s", "reward>=1 turns>3 tokens>1000 duration>2s"],
  ["duration<=0.29s duration>1m duration<0.5h", "duration<=290ms duration>60s duration<1800s"],
  ["not truncated:true -slot:0 reward!=1", "-truncated:true -slot=0 -reward=1"],
  ["-reward!=1", "reward=1"],
  ["reason:provider|timeout", "error:provider|timeout"],
  ["correct_answer=1 équipe/a.b>-2e3", "correct_answer=1 équipe/a.b>-2000"],
  ['"odd name"<1 "turns">2 "not">0', '"odd name"<1 "turns">2 "not">0'],
  ['"say \\"no\\"" -"back\\\\slash"', '"say \\"no\\"" -"back\\\\slash"'],
  ['member:"two words" stop:"null"', 'member:"two words" stop:"null"'],
  ["id=ro_1|ro_2 -id:ro_3", "id:ro_1|ro_2 -id:ro_3"],
  ["reviewed=true mark:good|null reviewer!=per_1", "reviewed:true mark:good|null -reviewer:per_1"],
  ['"mark"<1 "reviewed">0', '"mark"<1 "reviewed">0'],
])("%s is the filter %s", (text, printed) => expect(read(text)).toBe(printed));

test.each([
  ["rewrd", 5, 'at character 6, the end: expected one of : = != < <= > >=, or "rewrd" in quotes'],
  ["turns>3 reward<abc", 15, 'at character 16, "abc": expected a number'],
  ["mood:good", 5, "expected a number, or null (an unknown field is taken as the name of a score)"],
  ["outcome:bad", 8, "expected one of scored, unscored, failed, cancelled"],
  ["status:queued", 7, "expected one of running, scoring, done"],
  ["truncated:maybe", 10, "expected truncated:true or truncated:false"],
  ["mark:fine", 5, "expected one of good, bad, unsure"],
  ["mark<3", 4, "expected mark: followed by a word"],
  ["reviewed:yes", 9, "expected reviewed:true or reviewed:false"],
  ["stop<3", 4, "expected stop: followed by a word"],
  ["duration>fast", 9, "expected a duration such as 2s"],
  ["reward<null", 7, "expected a number"],
  ["reward<1|2", 8, "expected a space or the end"],
  ["turns:1|", 8, "the end: expected a value"],
  ["reward>1e999", 7, "expected a number"],
  ['turns>1 "open', 8, "expected a closing"],
  ['""', 0, "expected a text of at least one character"],
  ["- reward<1", 1, "expected a field as in reward<0.5"],
  ["--reward<1", 1, "expected a field"],
  ["not", 3, "expected one of"],
])("%s is wrong at %i, and the error names what was expected", (text, at, message) => {
  expect(read(text)).toEqual([at, expect.stringContaining(message)]);
});

test("a filter has maximal numbers of characters, terms and values, and the first one above is refused at its place", () => {
  const most = Array.from({ length: 20 }, () => "slot:0");
  expect(read(most.join(" "))).toBe(most.map(() => "slot=0").join(" "));
  expect(read([...most, "slot:0"].join(" "))).toEqual([140, expect.stringContaining("at most 20 terms")]);
  expect(read(`slot:${Array(40).fill("1").join("|")}`)).toMatch(/^slot=1/);
  expect(read(`slot:${Array(41).fill("1").join("|")}`)).toEqual([85, expect.stringContaining("at most 40 values")]);
  expect(read("x".repeat(501))).toEqual([500, "has more than 500 characters"]);
});

const Word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
const Amount = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const Name = fc.oneof(Word, fc.constantFrom("turns", "not", "latency", "correct_answer", "dispatched"));
const compared = (value: fc.Arbitrary<number>) =>
  fc.oneof(
    fc.record({
      op: fc.constant("=" as const),
      values: fc.array(fc.option(value), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ op: fc.constantFrom("<", "<=", ">", ">="), values: value.map((one) => [one]) }),
  );
const Term: fc.Arbitrary<FilterTerm> = fc
  .oneof(
    fc
      .tuple(fc.constantFrom(...NUMBER_FIELDS.filter((field) => field !== "duration")), compared(Amount))
      .map(([field, rest]) => ({ kind: "number" as const, field, ...rest })),
    compared(fc.nat(10_000_000)).map((rest) => ({ kind: "number" as const, field: "duration" as const, ...rest })),
    fc.tuple(Name, compared(Amount)).map(([name, rest]) => ({ kind: "score" as const, name, ...rest })),
    fc.record({
      kind: fc.constant("word" as const),
      field: fc.constantFrom("error", "stop", "task", "member"),
      values: fc.array(fc.option(fc.oneof(Word, fc.constant("null"))), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("flag" as const), field: fc.constantFrom(...FLAG_FIELDS), value: fc.boolean() }),
    fc.record({ kind: fc.constant("review"), field: fc.constant("reviewed"), values: fc.tuple(fc.boolean()) }),
    fc.record({
      kind: fc.constant("review" as const),
      field: fc.constantFrom("mark", "reviewer"),
      values: fc.array(fc.option(fc.constantFrom("good", "bad", "unsure")), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("text" as const), text: Word }),
  )
  .chain((term) => fc.boolean().map((negated) => ({ ...term, negated }) as FilterTerm));

test("a printed filter is parsed as the same terms", () => {
  fc.assert(
    fc.property(fc.array(Term, { maxLength: 3 }), (terms) => {
      const text = printFilter(terms);
      fc.pre(text.length <= 500);
      expect(parseFilter(text)).toEqual({ ok: true, terms });
    }),
  );
});

test("any text is parsed, or refused at a place within it", () => {
  const parts = fc.constantFrom("reward", "-", "not ", "<", ":", "|", '"', "\\", " ", "1", "null", "x", "true", "é");
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(parts).map((all) => all.join("")),
      ),
      (text) => {
        const parsed = parseFilter(text);
        if (parsed.ok) expect(parseFilter(printFilter(parsed.terms))).toEqual(parsed);
        else {
          expect(parsed.error.at).toBeGreaterThanOrEqual(0);
          expect(parsed.error.at + parsed.error.length).toBeLessThanOrEqual(text.length);
        }
      },
    ),
  );
});

const Sort: fc.Arbitrary<Sorting> = fc.record({
  descending: fc.boolean(),
  by: fc.oneof(
    fc.record({ kind: fc.constant("field" as const), field: fc.constantFrom(...ROLLOUT_SORTS) }),
    fc.record({ kind: fc.constant("score" as const), name: Name }),
  ),
});

test("a printed sort is parsed as the same sort; a score with a field's name must be quoted", () => {
  fc.assert(
    fc.property(Sort, (sort) => {
      expect(parseSort(printSort(sort))).toEqual(sort);
    }),
  );
  expect(parseSort("latency")).toEqual({ by: { kind: "field", field: "duration" }, descending: false });
  expect([parseSort("two words"), parseSort(""), parseSort("outcome"), parseSort('""')]).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect(parseMeasure("ended", ["reward"])).toBeNull();
  expect(parseMeasure('"ended"', ["reward"])).toEqual({ kind: "score", name: "ended" });
});
