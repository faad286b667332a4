/**
 * Arguments drawn from a tool's JSON Schema: right in form, senseless in content.
 *
 * Invariants. The same stream of numbers draws the same arguments. What a schema says beyond types, choices and bounds
 * (patterns, references) is not followed: such a call is answered with what is wrong, as any model's would be.
 */
import * as z from "zod";
import type { Json } from "../../contract/json.ts";

/** Numbers are drawn this far from zero, or from the bound nearest to it. */
const SPAN = 100;
const LONGEST_LIST = 3;
const WORDS = ["alpha", "beta", "42", "left", "SELECT 1", ""] as const;

const SchemaNode = z.looseObject({
  type: z.unknown().optional(),
  const: z.json().optional(),
  enum: z.array(z.json()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minItems: z.number().optional(),
});
type SchemaNode = z.infer<typeof SchemaNode>;

/** A value that a schema describes; null where it describes nothing that is known here. */
export function drawValue(schema: unknown, random: () => number): Json {
  const read = SchemaNode.safeParse(schema);
  if (!read.success) return null;
  const node = read.data;
  if (node.const !== undefined) return node.const;
  if (node.enum !== undefined) return pick(node.enum, random) ?? null;
  const alternatives = node.anyOf ?? node.oneOf;
  if (alternatives !== undefined) return drawValue(pick(alternatives, random), random);
  return drawTyped(Array.isArray(node.type) ? pick(node.type, random) : node.type, node, random);
}

function drawTyped(type: unknown, node: SchemaNode, random: () => number): Json {
  switch (type) {
    case "boolean":
      return random() < 0.5;
    case "integer":
      return Math.floor(drawNumber(node, random));
    case "number":
      return Math.round(drawNumber(node, random) * 10) / 10;
    case "string":
      return pick(WORDS, random) ?? "";
    case "array": {
      const length = Math.max(node.minItems ?? 0, Math.floor(random() * (LONGEST_LIST + 1)));
      return Array.from({ length }, () => drawValue(node.items, random));
    }
    case "object":
      return Object.fromEntries(
        Object.entries(node.properties ?? {}).map(([name, member]) => [name, drawValue(member, random)]),
      );
    default:
      return null;
  }
}

function drawNumber({ minimum, maximum }: SchemaNode, random: () => number): number {
  const low = Math.min(Math.max(minimum ?? -SPAN, -SPAN / 10), maximum ?? Number.MAX_VALUE);
  const high = Math.max(low, Math.min(maximum ?? low + SPAN, low + SPAN));
  return low + random() * (high - low);
}

export function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)];
}
