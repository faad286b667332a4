import { expect, test } from "vitest";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { JudgeRubric } from "../../../src/core/rubrics/judge-rubric.ts";
import { asRubric, Rubric, RubricGroup } from "../../../src/core/rubrics/rubric.ts";

const judged = (judge: string) =>
  new JudgeRubric({ name: "j", prompt: "{response}", choices: { no: 0, yes: 1 }, judge });

test("a group without a rubric is refused", () => {
  expect(() => new RubricGroup([])).toThrow(RangeError);
  expect(() => asRubric([])).toThrow(RangeError);
});

test("options, a rubric, a list and a group all become a group", () => {
  const rubric = new Rubric({ rewards: { f: () => 1 } });
  const group = asRubric([{ rewards: { g: () => 1 } }, rubric]);
  expect(asRubric({ rewards: { g: () => 1 } }).rubrics).toHaveLength(1);
  expect(asRubric(rubric).rubrics).toEqual([rubric]);
  expect(group.rubrics[1]).toBe(rubric);
  expect(asRubric(group)).toBe(group);
});

test("options without a parser get the environment's; others keep their own", () => {
  const [mine, shared] = [new Parser(), new Parser()];
  const group = asRubric([{ parser: mine }, {}], shared);
  expect(group.rubrics.map((rubric) => rubric.parser)).toEqual([mine, shared]);
});

test("the judges of a group are those of its rubrics, each once", () => {
  const group = asRubric([judged("a"), {}, judged("b"), judged("a")]);
  expect(group.judges).toEqual(["a", "b"]);
});

test("a group reports whether its members must be scored together", () => {
  const alone = asRubric({ rewards: { f: () => 1 } });
  expect(alone.hasGroupFunctions).toBe(false);
  const together = alone.with(new Rubric({ groupRewards: { g: (group) => group.map(() => 1) } }));
  expect(together.hasGroupFunctions).toBe(true);
  expect(alone.rubrics).toHaveLength(1);
});
