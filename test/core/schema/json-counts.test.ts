import fc from "fast-check";
import { expect, test } from "vitest";
import { holdsMore } from "../../../src/core/schema/bounded-lists.ts";
import { countJson } from "../../../src/core/schema/json-counts.ts";

function namesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, member) => sum + namesOf(member), names);
}

test("the counts of values and names equal those of the parsed value, whatever the spacing", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 4), (value, indent) => {
      const { values, names } = countJson(JSON.stringify(value, null, indent));
      expect(names).toBe(namesOf(value));
      expect(holdsMore(value, values)).toBe(false);
      expect(holdsMore(value, values - 1)).toBe(true);
    }),
  );
});

test("the content of strings is not counted", () => {
  expect(countJson(String.raw`["a,b:[{", "\",:", "\\", {"x:\\\"y": "}"}]`)).toEqual({ values: 6, names: 1 });
});
