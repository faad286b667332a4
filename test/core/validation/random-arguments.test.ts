import { expect, test } from "vitest";
import * as z from "zod";
import { seededRandom } from "../../../src/contract/random.ts";
import { toolSchema } from "../../../src/core/environments/tool.ts";
import { parseArguments } from "../../../src/core/environments/tool-call.ts";
import { drawValue } from "../../../src/core/validation/policies.ts";

test.each([
  ["numbers without bounds", z.object({ a: z.number(), b: z.int() })],
  ["bounds far from zero", z.object({ a: z.int().min(1000), b: z.int().max(-1000) })],
  ["one bound far from zero", z.object({ a: z.number().min(1000), b: z.number().max(-1000) })],
  ["narrow bounds", z.object({ a: z.int().min(3).max(3), b: z.number().min(0).max(1) })],
  ["choices", z.object({ a: z.enum(["x", "y"]), b: z.literal(7), c: z.boolean() })],
  ["lists", z.object({ a: z.array(z.string()).min(2), b: z.array(z.int()) })],
  ["objects within objects", z.object({ a: z.object({ b: z.object({ c: z.string() }) }) })],
  ["alternatives", z.object({ a: z.union([z.int(), z.string()]), b: z.int().nullable() })],
  ["what may be left out", z.object({ a: z.object({ b: z.int().optional() }).optional() })],
  ["no arguments", z.object({})],
])("arguments drawn from a schema of %s are valid", (_name, parameters) => {
  const { parameters: schema } = toolSchema("t", parameters);
  for (let seed = 0; seed < 100; seed += 1) {
    const drawn = drawValue(schema, seededRandom(seed));
    expect(parseArguments(parameters, Object(drawn)).error).toBeUndefined();
    expect(drawValue(schema, seededRandom(seed))).toEqual(drawn);
  }
});

test("an unsupported schema gives null", () => {
  expect(drawValue({ $ref: "#/$defs/x" }, () => 0)).toBeNull();
  expect(drawValue("no schema", () => 0)).toBeNull();
});
