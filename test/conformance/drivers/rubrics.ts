/** Rubrics over states that no environment produced. */
import * as z from "zod";
import { Parser } from "../../../src/core/parsers/parser.ts";
import { Rubric, RubricGroup } from "../../../src/core/rubrics/rubric.ts";
import {
  type ScoredMember,
  type StateToScore,
  scoreGroup,
  scoreState,
} from "../../../src/core/rubrics/score-states.ts";
import { type Drivers, driver } from "../driver.ts";
import { errorClass } from "../error-classes.ts";

const name = z.string();
const TestFunction = z.union([
  z.strictObject({ name, group: z.literal(true), values: z.array(z.unknown()) }),
  z.strictObject({ name, group: z.literal(true), throws: z.string() }),
  z.strictObject({ name, throws: z.string() }),
  z.strictObject({ name, requires: z.string(), value: z.unknown() }),
  z.strictObject({ name, optional: z.record(z.string(), z.unknown()), returns: z.string() }),
  z.strictObject({ name, value: z.unknown() }),
]);
type TestFunction = z.infer<typeof TestFunction>;

const Given = z.object({
  funcs: z.array(TestFunction),
  weights: z.array(z.number()).optional(),
  metrics: z.array(TestFunction).default([]),
});
const Step = z.object({
  reward: z
    .number()
    .nullish()
    .transform((reward) => reward ?? null),
  advantage: z
    .number()
    .nullish()
    .transform((advantage) => advantage ?? null),
});
const Row = z.looseObject({});

export const RUBRICS: Drivers = {
  rubric_rollout: driver(Given.extend({ row: Row.optional() }), async ({ row, ...given }) => {
    const rubric = rubricOf(given);
    const { reward, metrics, scoring_errors } = await scoreState(rubric, state(row));
    const weights = rubric.functions.map(({ weight }) => weight);
    return { reward, metrics, weights, scoring_error_counts: [scoring_errors.length] };
  }),
  rubric_ctor: driver(z.object({ n_funcs: z.int(), weights: z.array(z.number()) }), ({ n_funcs, weights }) => {
    const funcs = Array.from({ length: n_funcs }, (_, at) => ({ name: `f${at}`, fn: () => 1 }));
    const rubric = Rubric.fromLists({ funcs, weights });
    return { weights: rubric.functions.map(({ weight }) => weight) };
  }),
  rubric_group: driver(
    Given.extend({ n: z.int(), state1_steps: z.array(Step).optional() }),
    async ({ n, state1_steps, ...given }) => {
      const states = Array.from({ length: n }, (_, at) =>
        state(at === 1 && state1_steps !== undefined ? { trajectory: state1_steps } : {}),
      );
      const members = await scoreGroup(rubricOf(given), states);
      return { ...columnsOf(members), state1_steps: members[1]?.steps };
    },
  ),
  rubric_group_of_rubrics: driver(
    z.object({
      mode: z.enum(["rollout", "group"]),
      n: z.int().default(1),
      rubrics: z.array(Given),
    }),
    async ({ mode, n, rubrics }) => {
      const group = new RubricGroup(rubrics.map(rubricOf));
      if (mode === "rollout") return scoreState(group, state());
      const states = Array.from({ length: n }, () => state({ trajectory: [UNJUDGED] }));
      const members = await scoreGroup(group, states);
      return {
        ...columnsOf(members),
        state: members.map(({ reward, advantage }) => [reward, advantage]),
        step: members.map(({ steps: [step] }) => [step?.reward, step?.advantage]),
      };
    },
  ),
  rubric_injection: driver(
    z.union([
      z.object({ row: Row, params: z.array(z.string()) }),
      z.object({
        row: Row,
        class_objects: z.record(z.string(), z.unknown()),
        func: z.object({
          name,
          param: z.string(),
          equals: z.unknown(),
          // biome-ignore lint/suspicious/noThenProperty: the file's own word, never awaited
          then: z.unknown(),
          else: z.unknown(),
        }),
      }),
    ]),
    (input) => ("params" in input ? typesOfArguments(input) : rewardWithObjects(input)),
  ),
};

const UNJUDGED = { reward: null, advantage: null };

function state(row: object = {}): StateToScore {
  const asked = { prompt: [{ role: "user" as const, content: "q" }], answer: "a", example_id: 0 };
  return { ...asked, ...row, completion: [] };
}

function columnsOf(members: readonly ScoredMember[]): object {
  return {
    rewards: members.map(({ reward }) => reward),
    advantages: members.map(({ advantage }) => advantage),
    metrics: members.map(({ metrics }) => metrics),
    scoring_error_counts: members.map(({ scoring_errors }) => scoring_errors.length),
  };
}

function rubricOf({ funcs, weights, metrics }: z.infer<typeof Given>): Rubric {
  const rubric = Rubric.fromLists({
    funcs: funcs.map((given) =>
      "group" in given
        ? { name: given.name, group: true as const, fn: () => scoresOf(given) }
        : { name: given.name, fn: bodyOf(given) },
    ),
    ...(weights && { weights }),
  });
  for (const given of metrics) {
    if ("group" in given) rubric.addGroupMetric(given.name, () => scoresOf(given));
    else rubric.addMetric(given.name, bodyOf(given));
  }
  return rubric;
}

// A test function may return any type, like an author's function.
function scoresOf(given: Extract<TestFunction, { group: true }>): readonly number[] {
  if ("throws" in given) throw new (errorClass(given.throws))(`${given.name} threw`);
  return given.values as readonly number[];
}

function bodyOf(given: Exclude<TestFunction, { group: true }>) {
  return (args: object): number => {
    if ("throws" in given) throw new (errorClass(given.throws))(`${given.name} threw`);
    if ("requires" in given && argument(args, given.requires) === undefined) {
      throw new TypeError(`${given.name} needs ${given.requires}`);
    }
    if (!("optional" in given)) return given.value as number;
    return (argument(args, given.returns) ?? given.optional[given.returns]) as number;
  };
}

function argument(args: object, key: string): unknown {
  return Reflect.get(args, key);
}

async function typesOfArguments(input: { row: object; params: readonly string[] }) {
  const types: Record<string, string> = {};
  const given = state(input.row);
  const look = (args: object) => {
    for (const key of input.params) types[key] = typeName(argument(args, key), given);
    return 1;
  };
  await scoreState(new Rubric({ rewards: { look } }), given);
  return types;
}

function typeName(value: unknown, given: StateToScore): string {
  if (value === null || value === undefined) return "NoneType";
  if (value === given) return "State";
  if (value instanceof Parser) return "Parser";
  if (Array.isArray(value)) return "list";
  if (typeof value === "number") return Number.isInteger(value) ? "int" : "float";
  return { string: "str", boolean: "bool", object: "dict" }[String(typeof value)] ?? typeof value;
}

async function rewardWithObjects(input: {
  row: object;
  class_objects: Readonly<Record<string, unknown>>;
  func: { name: string; param: string; equals?: unknown; then?: unknown; else?: unknown };
}) {
  const { param, equals, then: met, else: unmet } = input.func;
  const look = (args: object) =>
    (JSON.stringify(argument(args, param)) === JSON.stringify(equals) ? met : unmet) as number;
  const rubric = new Rubric({ rewards: { [input.func.name]: look } });
  for (const [key, value] of Object.entries(input.class_objects)) rubric.addClassObject(key, value);
  return { reward: (await scoreState(rubric, state(input.row))).reward };
}
