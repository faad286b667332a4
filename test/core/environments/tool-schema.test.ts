import { expect, test } from "vitest";
import * as z from "zod";
import { tool, toolDefinition } from "../../../src/core/environments/tool.ts";
import { dropOmitted, toolSchema } from "../../../src/core/environments/tool-schema.ts";

test("R-schema: a schema is closed, titled, and requires every parameter, defaults included", () => {
  const parameters = z.object({
    row_count: z.number().describe("how many"),
    name: z.string().default("x"),
    flag: z.boolean(),
    maybe: z.string().nullable(),
    list: z.array(z.number()),
  });
  expect(toolSchema("fetch_rows", parameters)).toEqual({
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
  });
});

test("an optional parameter takes null, which is how a strict model leaves it out", () => {
  const parameters = z.object({ at: z.string().optional().describe("where"), n: z.number() });
  expect(toolSchema("t", parameters)).toMatchObject({
    required: ["at", "n"],
    properties: {
      at: { title: "At", description: "where", anyOf: [{ type: "string" }, { type: "null" }] },
    },
  });
  expect(dropOmitted(parameters, { at: null, n: null })).toEqual({ n: null });
});

test("a parameter that takes null itself keeps it", () => {
  const parameters = z.object({ at: z.string().nullish() });
  expect(dropOmitted(parameters, { at: null })).toEqual({ at: null });
});

test("an untyped parameter has only a title, and no parameters make an empty closed object", () => {
  expect(toolSchema("t", z.object({ anything: z.unknown() }))["properties"]).toEqual({
    anything: { title: "Anything" },
  });
  expect(toolSchema("t", z.object({}))).toMatchObject({ properties: {}, required: [] });
});

test("a definition is strict and in the endpoint's wire shape", () => {
  const noop = tool({
    name: "noop",
    description: "Does nothing.",
    parameters: z.object({}),
    run: () => null,
  });
  expect(toolDefinition(noop)).toMatchObject({
    type: "function",
    function: { name: "noop", description: "Does nothing.", strict: true },
  });
});
