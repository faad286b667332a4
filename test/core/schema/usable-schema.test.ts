import { expect, test } from "vitest";
import { usableSchema as read } from "../../../src/core/schema/usable-schema.ts";

const usableSchema = (schema: unknown) => read(schema, 65_536);

test.each<[string, object]>([
  [
    "a closed object",
    { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false },
  ],
  ["types in a list", { type: "object", properties: { a: { type: ["string", "null"], enum: ["x", null] } } }],
  [
    "a tree, which refers to itself at a deeper place",
    { type: "object", properties: { children: { type: "array", items: { $ref: "#" } } } },
  ],
  [
    "definitions by pointer, with escapes",
    { type: "object", $defs: { "a/b c": { type: "string" } }, properties: { a: { $ref: "#/$defs/a~1b%20c" } } },
  ],
  [
    "definitions by anchor and by id",
    {
      type: "object",
      $defs: { a: { $anchor: "here" }, b: { $id: "urn:b" } },
      properties: { a: { $ref: "#here" }, b: { $ref: "urn:b" } },
    },
  ],
  [
    "draft 7's items and dependencies",
    { type: "object", dependencies: { a: ["b"] }, properties: { a: { items: [{ type: "string" }, true] } } },
  ],
  [
    "properties that have the names of keywords",
    { type: "object", properties: { type: { type: "string" }, $ref: {}, required: true, items: {} } },
  ],
  [
    "values that look like schemas",
    {
      type: "object",
      properties: { a: { const: { type: 5 }, default: { required: true }, examples: [{ $ref: "#/no" }] } },
    },
  ],
  [
    "patterns and keywords that nobody knows",
    { type: "object", properties: { a: { pattern: "(?=x)", format: "colour", nullable: true } } },
  ],
])("a schema that endpoints accept is unchanged: %s", (_what, schema) => {
  expect(usableSchema(schema)).toEqual(schema);
});

test("if the type is missing, or one of several, it becomes object, since arguments are an object", () => {
  expect(usableSchema({})).toEqual({ type: "object" });
  expect(usableSchema({ properties: { a: {} } })).toEqual({ type: "object", properties: { a: {} } });
  expect(usableSchema({ type: ["object", "null"] })).toEqual({ type: "object" });
});

test("keywords that are null are removed, at any depth", () => {
  const nulls = {
    type: "object",
    required: null,
    $defs: null,
    properties: { a: { type: "array", items: null, enum: null } },
  };
  expect(usableSchema(nulls)).toEqual({ type: "object", properties: { a: { type: "array" } } });
  expect(usableSchema({ properties: { a: { default: null, const: null } } })).toMatchObject({
    properties: { a: { default: null, const: null } },
  });
});

test.each<[unknown, string]>([
  [null, "it is null, not an object"],
  [true, "it is a boolean, not an object"],
  ["object", "it is a string, not an object"],
  [[{ type: "object" }], "it is a list, not an object"],
  [{ type: "string" }, 'its type is "string", not "object"'],
  [{ type: ["array", "null"] }, 'its type is ["array","null"], not "object"'],
  [{ type: "dict" }, 'type is not a type: "dict"'],
  [{ properties: ["a"] }, "properties is a list, not an object of schemas"],
  [{ properties: { a: "string" } }, "properties/a is a string, not a schema"],
  [{ properties: { a: { type: "int" } } }, 'properties/a/type is not a type: "int"'],
  [{ properties: { a: { type: "string", required: true } } }, "properties/a/required is a boolean, not a list"],
  [{ required: "a" }, "required is a string, not a list"],
  [{ required: [1] }, "required is not a list of names"],
  [{ properties: { a: { enum: "x" } } }, "properties/a/enum is a string, not a list"],
  [{ anyOf: { type: "object" } }, "anyOf is an object, not a list"],
  [{ properties: { a: { $ref: "#/$defs/b" } } }, "properties/a refers to #/$defs/b, which does not exist"],
  [
    { properties: { a: { $ref: "https://example.com/a.json" } } },
    "properties/a refers to https://example.com/a.json, which does not exist",
  ],
  [{ $ref: 5 }, "$ref is a number, not a reference"],
  [{ $ref: "#" }, "it refers to itself endlessly"],
  [
    { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { allOf: [{ $ref: "#/$defs/a" }] } } },
    "it refers to itself endlessly",
  ],
  [{ properties: { a: { anyOf: [{ type: "string" }, { $ref: "#/properties/a" }] } } }, "it refers to itself endlessly"],
  [JSON.parse('{"properties":{"__proto__":{}}}'), "properties.__proto__ is not a valid name"],
])("a schema that no draft allows is refused with its place: %j", (schema, why) => {
  expect(() => usableSchema(schema)).toThrow(new TypeError(why));
});

test("an endless or too large schema is refused, and one with many definitions is accepted", () => {
  expect(() => usableSchema(JSON.parse(`${'{"items":'.repeat(20_000)}{}${"}".repeat(20_000)}`))).toThrow(
    /is nested more than 100 deep$/,
  );
  expect(() => usableSchema({ title: "x".repeat(65_536) })).toThrow("it is over 65536 bytes");
  const $defs = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]));
  expect(Object.keys(usableSchema({ $defs: { ...$defs, d1000: {} } }))).toEqual(["type", "$defs"]);
});
