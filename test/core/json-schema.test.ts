import { expect, test } from "vitest";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { schemaChecker } from "../../src/core/json-schema.ts";

const faults = (schema: JsonObject, value: Json) => schemaChecker(schema)(value);

const order: JsonObject = {
  type: "object",
  properties: {
    count: { type: "number", minimum: 1 },
    names: { type: "array", items: { $ref: "#/$defs/name" } },
    colour: { enum: ["red", "blue"] },
  },
  required: ["count"],
  additionalProperties: false,
  $defs: { name: { type: "string", minLength: 1 } },
};

test("a value that fits has no faults; of one that does not, each is told once, with its path", () => {
  expect(faults(order, { count: 1, names: ["a"], colour: "red" })).toEqual([]);
  expect(faults(order, { count: 0, names: ["a", 2], colour: "green", other: true })).toEqual([
    "count: 0 is less than 1.",
    'names.1: Instance type "number" is invalid. Expected "string".',
    'colour: Instance does not match any of ["red","blue"].',
    'Property "other" does not match additional properties schema.',
  ]);
  expect(faults(order, {})).toEqual(['Instance does not have required property "count".']);
  expect(faults(order, [])).toEqual(['Instance type "array" is invalid. Expected "object".']);
});

test("the draft is the one the schema names", () => {
  const older = { $schema: "http://json-schema.org/draft-04/schema#" };
  expect(faults({ ...older, minimum: 3, exclusiveMinimum: true }, 3).length).toBe(1);
  expect(faults({ exclusiveMinimum: 3 }, 3).length).toBe(1);
});

test("a schema that cannot be followed is an error of its own, not one of the value", () => {
  expect(() => faults({ $ref: "#/nowhere" }, 1)).toThrow(/Unresolved \$ref "#\/nowhere"/);
  expect(() => faults({ $ref: "#" }, 1)).toThrow(/refers to itself without end/);
});

test("a value nested without end is a fault of the value", () => {
  const list: JsonObject = {
    $ref: "#/$defs/list",
    $defs: { list: { items: { $ref: "#/$defs/list" } } },
  };
  const deep: Json = JSON.parse("[".repeat(5000) + "]".repeat(5000));
  expect(faults(list, [[[]]])).toEqual([]);
  expect(faults(list, deep)).toEqual([expect.stringContaining("nested more than 100 deep")]);
});

test("a pattern matches as JavaScript's does, and none takes longer than its text is long", () => {
  const code: JsonObject = {
    type: "string",
    pattern: "^(?<kind>[a-z]+)-\\d{2}$",
    format: "hostname",
  };
  expect(faults(code, "abc-12")).toEqual([]);
  expect(faults(code, "abc-1")).toEqual([
    'String does not match format "/^(?<kind>[a-z]+)-\\d{2}$/".',
  ]);
  expect(faults({ pattern: "^(a+)+$" }, `${"a".repeat(50_000)}!`).length).toBe(1);
  expect(faults({ pattern: "^a$" }, 5)).toEqual([]);
});

test("a property named pattern is a property, and one in a constant is data", () => {
  const named: JsonObject = {
    properties: { pattern: { type: "string", pattern: "^x" }, const: { pattern: "^y" } },
  };
  expect(faults(named, { pattern: "x", const: "y" })).toEqual([]);
  expect(faults(named, { pattern: "y", const: "x" }).length).toBe(2);
  expect(faults({ const: { pattern: "(" } }, { pattern: "(" })).toEqual([]);
});

test("patterns that only backtracking could match are refused with the schema", () => {
  expect(() => schemaChecker({ pattern: "^(?=a)" })).toThrow(/the JSON Schema cannot be used/);
  expect(() => schemaChecker({ patternProperties: { "^(a+)+$": true } })).toThrow(/one repetition/);
  expect(faults({ patternProperties: { "^x-": { type: "number" } } }, { "x-a": "1" })).toEqual([
    'x-a: Instance type "string" is invalid. Expected "number".',
  ]);
});
