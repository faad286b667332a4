import { expect, test } from "vitest";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { Rubric } from "../../../src/core/rubrics/rubric.ts";

function listOf(rubric: Rubric): [string, number, boolean][] {
  return rubric.functions.map(({ name, weight, group }) => [name, weight, group]);
}

test("the record form becomes an ordered list: rewards, group rewards, metrics", () => {
  const rubric = new Rubric({
    metrics: { length: () => 3 },
    groupRewards: { rank: { fn: (group) => group.map(() => 1), weight: 0.5 } },
    rewards: { right: () => true, brief: { fn: () => 1, weight: 0.1 } },
  });
  expect(listOf(rubric)).toEqual([
    ["right", 1, false],
    ["brief", 0.1, false],
    ["rank", 0.5, true],
    ["length", 0, false],
  ]);
});

test.each(["a\nb", "a\u202eb", "a\ud800b", "a\u0007b"])(
  "a function called %j is refused, and its name is escaped in the error",
  (name) => {
    const add = () => new Rubric({ rewards: { [name]: () => 1 } });
    expect(add).toThrow(/^the score "a\\+(u[0-9a-f]{4}|n)b": a name must not contain control characters/);
  },
);

test("functions may be added later and may share a name", () => {
  const rubric = new Rubric();
  rubric.addRewardFunc("f", () => 1);
  rubric.addRewardFunc("f", () => 2, 3);
  rubric.addMetric("m", () => 0);
  expect(listOf(rubric)).toEqual([
    ["f", 1, false],
    ["f", 3, false],
    ["m", 0, false],
  ]);
});

test("lists of functions and weights must have the same length, and the error names both", () => {
  const funcs = [
    { name: "f", fn: () => 1 },
    { name: "g", fn: () => 1 },
  ];
  expect(() => Rubric.fromLists({ funcs, weights: [1] })).toThrow("1 weights for 2 functions");
  expect(listOf(Rubric.fromLists({ funcs, weights: [2, -1] }))).toEqual([
    ["f", 2, false],
    ["g", -1, false],
  ]);
  expect(listOf(Rubric.fromLists({ funcs, weights: [] })).map(([, weight]) => weight)).toEqual([1, 1]);
});

test("a misspelt option is an error that names it", () => {
  const options = { reward: { f: () => 1 } };
  expect(() => Reflect.construct(Rubric, [options])).toThrow(/no option reward;.*rewards/);
});

test("a value that is not a function, or a weight that is not finite, is refused with its name", () => {
  expect(() => Reflect.construct(Rubric, [{ rewards: { f: 1 } }])).toThrow("f");
  expect(() => new Rubric({ rewards: { f: { fn: () => 1, weight: Number.NaN } } })).toThrow("f");
});

test("a rubric needs no judge unless it lists one, and may have a parser", () => {
  const parser = new Parser();
  expect(new Rubric().judges).toEqual([]);
  expect(new Rubric({ parser }).parser).toBe(parser);
});
