import { format } from "@cfworker/json-schema";
import { expect, test } from "vitest";
import type { Json, JsonObject } from "../../../src/contract/json.ts";
import { WorkBudgetError } from "../../../src/core/rubrics/work.ts";
import { schemaChecker } from "../../../src/core/schema/json-schema.ts";

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

test("a valid value has no faults; each fault of an invalid one is reported once, with its path", () => {
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

test("the schema determines the draft", () => {
  const older = { $schema: "http://json-schema.org/draft-04/schema#" };
  expect(faults({ ...older, minimum: 3, exclusiveMinimum: true }, 3).length).toBe(1);
  expect(faults({ exclusiveMinimum: 3 }, 3).length).toBe(1);
});

test("a schema that cannot be used throws an error of its own, instead of reporting a fault of the value", () => {
  expect(() => faults({ $ref: "#/nowhere" }, 1)).toThrow(/Unresolved \$ref "#\/nowhere"/);
  expect(() => faults({ $ref: "#" }, 1)).toThrow(/refers to itself endlessly/);
});

test("an endlessly nested schema is refused", () => {
  const deep: JsonObject = JSON.parse(`${'{"not":'.repeat(20_000)}{}${"}".repeat(20_000)}`);
  expect(() => faults(deep, 1)).toThrow(/^the JSON Schema cannot be used: .*nested more than 100 deep/);
});

test("endless nesting of a value is a fault of the value", () => {
  const list: JsonObject = {
    $ref: "#/$defs/list",
    $defs: { list: { items: { $ref: "#/$defs/list" } } },
  };
  const deep: Json = JSON.parse("[".repeat(5000) + "]".repeat(5000));
  expect(faults(list, [[[]]])).toEqual([]);
  expect(faults(list, deep)).toEqual([expect.stringContaining("nested more than 100 deep")]);
});

test("a pattern matches as in JavaScript, in time linear in the text", () => {
  const code: JsonObject = {
    type: "string",
    pattern: "^(?<kind>[a-z]+)-\\d{2}$",
    format: "hostname",
  };
  expect(faults(code, "abc-12")).toEqual([]);
  expect(faults(code, "abc-1")).toEqual(['String does not match format "/^(?<kind>[a-z]+)-\\d{2}$/".']);
  expect(faults({ pattern: "^(a+)+$" }, `${"a".repeat(50_000)}!`).length).toBe(1);
  expect(faults({ pattern: "^a$" }, 5)).toEqual([]);
});

test("a property may be named pattern, and a pattern in a constant is data", () => {
  const named: JsonObject = {
    properties: { pattern: { type: "string", pattern: "^x" }, const: { pattern: "^y" } },
  };
  expect(faults(named, { pattern: "x", const: "y" })).toEqual([]);
  expect(faults(named, { pattern: "y", const: "x" }).length).toBe(2);
  expect(faults({ const: { pattern: "(" } }, { pattern: "(" })).toEqual([]);
});

test("valid and invalid URLs are distinguished, whatever their length", () => {
  const fits = (text: string) => faults({ format: "url" }, text).length === 0;
  const good = [
    "http://example.com",
    "https://me:pass@exa-mple.co.uk:8080/a?b#c",
    "ftp://8.8.8.8/x@y",
    "http://a/b@example.com",
    "http://müller.de",
  ];
  const bad = [
    "example.com",
    "http://",
    "http://-a.com",
    "http://a--b.com",
    "http://10.0.0.1",
    "http://@example.com",
    "http://a b.com",
    "http://localhost",
    "http://example.com?x",
  ];
  expect(good.filter((text) => !fits(text))).toEqual([]);
  expect(bad.filter(fits)).toEqual([]);
  for (const part of ["a", "a-", "a@", "a.", "a@a.bc/", "1."]) {
    expect(fits(`http://${part.repeat(100_000)}!`)).toBe(part === "a@a.bc/");
    expect(fits(`http://${part.repeat(100_000)} `)).toBe(false);
  }
});

test.each(Object.keys(format))("the format %s never backtracks, whatever the text", (name) => {
  const parts = ["a", "a-", "1", "0", "1.", "/", "%41", "{a", "{a,", "a@", ":", "~0", "1W", "T", "(", "[a"];
  for (const start of ["", "http://", "P", '"', "#/", "{", "2020-01-01T00:00:00."]) {
    for (const part of parts) {
      faults({ format: name }, `${start}${part.repeat(20_000)}\n`);
    }
  }
});

test.each<[string, JsonObject, Json]>([
  ["names in names that are new roots, twice at each", nestedIds(40), "a"],
  ["a long name before many schemas", { properties: { ["k".repeat(1e5)]: { allOf: trues(5000) } } }, 1],
  ["many branches for many items", { items: { allOf: trues(5000) } }, trues(5000)],
  ["names that a repetition is looked for in", { patternProperties: { "x*y": true } }, { ["x".repeat(1e5)]: 1 }],
  ["a constant for many items", { items: { const: "y".repeat(1e6) } }, trues(100)],
  ["one long text, and many that are measured", { items: { maxLength: 3 } }, ["x".repeat(1e6), ...trues(2000)]],
  ["places handed on from branch to branch", handedOn(100), trues(4000)],
  ["two ways at each of 60 depths", twoWays(), JSON.parse("[".repeat(60) + "]".repeat(60))],
])("%s: beyond the work budget there is no result", (_what, schema, value) => {
  expect(() => faults(schema, value)).toThrow(WorkBudgetError);
});

function trues(count: number): true[] {
  return Array.from({ length: count }, () => true);
}

function nestedIds(depth: number): JsonObject {
  if (depth === 0) return {};
  return { $id: `https://example.com/${depth}`, properties: { a: nestedIds(depth - 1) } };
}

function handedOn(steps: number): JsonObject {
  const one = (at: number): JsonObject => {
    return { allOf: [{ $ref: `#/$defs/n${at + 1}` }], unevaluatedItems: true };
  };
  const all = Array.from({ length: steps }, (_, at): [string, JsonObject] => [`n${at}`, one(at)]);
  return { ...one(-1), $defs: { ...Object.fromEntries(all), [`n${steps}`]: { items: true } } };
}

function twoWays(): JsonObject {
  const items = { items: { $ref: "#/$defs/list" } };
  return { $ref: "#/$defs/list", $defs: { list: { anyOf: [items, items] } } };
}

test("a check does not use the budget of the next one, and the package's formats are restored afterwards", () => {
  const check = schemaChecker({ items: { type: "number", format: "url", pattern: "a" } });
  const list = Array.from({ length: 10_000 }, (_, at) => at);
  const before = { ...format };
  for (let at = 0; at < 8; at += 1) expect(check(list)).toEqual([]);
  expect(format).toEqual(before);
});

test("a schema with patterns that need backtracking is refused", () => {
  expect(() => schemaChecker({ pattern: "^(?=a)" })).toThrow(/the JSON Schema cannot be used/);
  expect(() => schemaChecker({ patternProperties: { "^(a+)+$": true } })).toThrow(/one repetition/);
  expect(faults({ patternProperties: { "^x-": { type: "number" } } }, { "x-a": "1" })).toEqual([
    'x-a: Instance type "string" is invalid. Expected "number".',
  ]);
});
