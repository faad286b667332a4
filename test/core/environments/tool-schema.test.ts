import { expect, test } from "vitest";
import * as z from "zod";
import { tool, toolDefinition, toolSchema } from "../../../src/core/environments/tool.ts";

const Place = z.object({ lat: z.number(), note: z.string().optional(), zoom: z.int().default(3) });
/** The strict schema of a place. */
const PLACE = {
  type: "object",
  properties: {
    lat: { title: "Lat", type: "number" },
    note: { title: "Note", anyOf: [{ type: "string" }, { type: "null" }] },
    zoom: { title: "Zoom", type: "integer", default: 3 },
  },
  required: ["lat", "note", "zoom"],
  additionalProperties: false,
};

/** The shape as a tool's closed object. */
function schemaOf(shape: z.ZodRawShape) {
  return toolSchema("t", z.strictObject(shape));
}

function propertiesOf(shape: z.ZodRawShape) {
  return schemaOf(shape).parameters["properties"];
}

test("R-schema: a schema is closed, titled, and requires every parameter, defaults included", () => {
  const parameters = z.object({
    row_count: z.number().describe("how many"),
    name: z.string().default("x"),
    flag: z.boolean(),
    maybe: z.string().nullable(),
    list: z.array(z.number()),
  });
  expect(toolSchema("fetch_rows", parameters)).toEqual({
    strict: true,
    parameters: {
      type: "object",
      title: "fetch_rows_args",
      additionalProperties: false,
      required: ["row_count", "name", "flag", "maybe", "list"],
      properties: {
        row_count: { title: "Row Count", type: "number", description: "how many" },
        name: { title: "Name", type: "string", default: "x" },
        flag: { title: "Flag", type: "boolean" },
        maybe: { title: "Maybe", anyOf: [{ type: "string" }, { type: "null" }] },
        list: { title: "List", type: "array", items: { type: "number" } },
      },
    },
  });
});

test("an optional parameter accepts null, with which a strict model omits it", () => {
  const { strict, parameters } = schemaOf({ at: z.string().optional().describe("where") });
  expect(strict).toBe(true);
  expect(parameters).toMatchObject({
    required: ["at"],
    properties: {
      at: { title: "At", description: "where", anyOf: [{ type: "string" }, { type: "null" }] },
    },
  });
});

test("objects are closed and list every property at any depth", () => {
  expect(schemaOf({ at: Place }).strict).toBe(true);
  expect(
    propertiesOf({
      at: Place,
      maybe: Place.optional(),
      list: z.array(Place),
      either: z.union([z.int(), Place]).optional(),
      kind: z.discriminatedUnion("t", [z.object({ t: z.literal("a"), at: Place }), z.object({ t: z.literal("b") })]),
      both: z.intersection(z.object({ a: z.int().optional() }), z.object({ b: z.int().optional() })),
    }),
  ).toEqual({
    at: { title: "At", ...PLACE },
    maybe: { title: "Maybe", anyOf: [PLACE, { type: "null" }] },
    list: { title: "List", type: "array", items: PLACE },
    either: { title: "Either", anyOf: [{ type: "integer" }, PLACE, { type: "null" }] },
    kind: {
      title: "Kind",
      anyOf: [
        {
          type: "object",
          properties: {
            t: { title: "T", type: "string", const: "a" },
            at: { title: "At", ...PLACE },
          },
          required: ["t", "at"],
          additionalProperties: false,
        },
        {
          type: "object",
          properties: { t: { title: "T", type: "string", const: "b" } },
          required: ["t"],
          additionalProperties: false,
        },
      ],
    },
    both: {
      title: "Both",
      type: "object",
      properties: {
        a: { title: "A", anyOf: [{ type: "integer" }, { type: "null" }] },
        b: { title: "B", anyOf: [{ type: "integer" }, { type: "null" }] },
      },
      required: ["a", "b"],
      additionalProperties: false,
    },
  });
});

test("a recursive schema refers to itself, is closed, and has nothing next to a reference", () => {
  const Tree = z.object({
    size: z.int(),
    get left() {
      return Tree.optional().describe("the smaller ones");
    },
    get all() {
      return z.array(Tree).default([]);
    },
  });
  const { strict, parameters } = schemaOf({ tree: Tree });
  expect(strict).toBe(true);
  const [[name = "", tree] = []] = Object.entries(parameters["$defs"] ?? {});
  const $ref = `#/$defs/${name}`;
  expect(parameters["properties"]).toEqual({ tree: { $ref } });
  expect(tree).toEqual({
    type: "object",
    properties: {
      size: { title: "Size", type: "integer" },
      left: { description: "the smaller ones", anyOf: [{ $ref }, { type: "null" }] },
      all: { title: "All", type: "array", items: { $ref }, default: [] },
    },
    required: ["size", "left", "all"],
    additionalProperties: false,
  });
});

test("an integer has only its author's bounds, and whole literals are integers", () => {
  const properties = propertiesOf({
    any: z.int(),
    bounded: z.int().min(1).max(5),
    positive: z.int().positive(),
    maybe: z.int().nullable(),
    five: z.literal(5),
    one_or_two: z.literal([1, 2]),
    half: z.literal([1, 1.5]),
    mixed: z.literal([1, "a", null]),
    size: z.enum({ Small: 1, Large: 2 }),
    word: z.enum(["a", "b"]),
  });
  expect(properties).toEqual({
    any: { title: "Any", type: "integer" },
    bounded: { title: "Bounded", type: "integer", minimum: 1, maximum: 5 },
    positive: { title: "Positive", type: "integer", exclusiveMinimum: 0 },
    maybe: { title: "Maybe", anyOf: [{ type: "integer" }, { type: "null" }] },
    five: { title: "Five", type: "integer", const: 5 },
    one_or_two: { title: "One Or Two", type: "integer", enum: [1, 2] },
    half: { title: "Half", type: "number", enum: [1, 1.5] },
    mixed: { title: "Mixed", type: ["integer", "string", "null"], enum: [1, "a", null] },
    size: { title: "Size", type: "integer", enum: [1, 2] },
    word: { title: "Word", type: "string", enum: ["a", "b"] },
  });
});

test.each([
  ["a record", z.record(z.string(), z.int())],
  ["a tuple", z.tuple([z.int(), z.string()])],
  ["an open object", z.looseObject({ a: z.int() })],
  ["anything", z.unknown()],
  ["a list of anything", z.array(z.unknown())],
  ["a format endpoints do not know", z.url()],
  ["a pattern that looks around", z.string().regex(/^(?!no)/)],
  ["two patterns at once", z.string().startsWith("a").endsWith("b")],
])("with %s in it, at any depth, a tool is sent as not strict, with its schema unchanged", (_, type) => {
  const { strict, parameters } = schemaOf({ at: Place, deep: z.object({ list: z.array(type) }) });
  expect(strict).toBe(false);
  expect(parameters).toMatchObject({
    title: "t_args",
    required: ["at", "deep"],
    additionalProperties: false,
    properties: {
      at: { required: ["lat"], properties: { zoom: { type: "integer", default: 3 } } },
    },
  });
  expect(JSON.stringify(parameters)).not.toMatch(/x-omissible|9007199254740991|"null"/);
});

test("an untyped parameter has only a title, and no parameters make an empty closed object", () => {
  expect(propertiesOf({ anything: z.unknown() })).toEqual({ anything: { title: "Anything" } });
  expect(schemaOf({})).toMatchObject({
    strict: true,
    parameters: { properties: {}, required: [] },
  });
});

test("a definition has the flag strict, in the endpoint's wire shape", () => {
  const named = (parameters: z.ZodObject) =>
    toolDefinition(tool({ name: "noop", description: "Nothing.", parameters, run: () => null }));
  expect(named(z.object({}))).toMatchObject({
    type: "function",
    function: { name: "noop", description: "Nothing.", strict: true },
  });
  expect(named(z.object({ by: z.record(z.string(), z.int()) })).function.strict).toBe(false);
});
