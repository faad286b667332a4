/** The text of a zod issue: ours, unless the schema sets a text of its own. */
import { expect, test } from "vitest";
import * as z from "zod";
import { issueText } from "../../../src/core/schema/issues.ts";

function messageOf(schema: z.ZodType, value: unknown): string {
  const { error } = z.strictObject({ field: schema }).safeParse({ field: value });
  return error === undefined ? "valid" : issueText(error, { field: value }).message;
}

test.each([
  [z.string(), 1, "must be a string"],
  [z.number(), "1", "must be a number"],
  [z.int(), 1.5, "must be a whole number"],
  [z.boolean(), 1, "must be true or false"],
  [z.array(z.string()), {}, "must be a list"],
  [z.record(z.string(), z.string()), [], "must be an object"],
  [z.string().min(1), "", "must not be empty"],
  [z.string().min(2), "a", "has fewer than 2 characters, the minimum"],
  [z.string().max(2), "abc", "has more than 2 characters, the maximum"],
  [z.array(z.int()).max(1), [1, 2], "has more than 1 items, the maximum"],
  [z.int().min(1), 0, "must be at least 1"],
  [z.number().positive(), 0, "must be more than 0"],
  [z.number().max(5), 6, "must be at most 5"],
  [z.number().lt(5), 5, "must be less than 5"],
  [z.enum(["a", "b"]), "c", "must be one of: a, b"],
  [z.literal("a"), "c", "must be a"],
  [z.number().multipleOf(2), 3, "must be a multiple of 2"],
  [z.url(), "a", "must be a URL"],
  [z.string().regex(/^a$/), "b", "must match the pattern /^a$/"],
  [z.string().regex(/^a$/, { error: "must be an a" }), "b", "must be an a"],
  [z.string(), undefined, "is required"],
])("issue %# is described in our words", (schema, value, text) => {
  expect(messageOf(schema, value)).toBe(`field: ${text}`);
});
