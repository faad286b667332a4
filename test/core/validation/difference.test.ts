import { expect, test } from "vitest";
import { firstDifference } from "../../../src/core/validation/plays.ts";

test.each([
  [{ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] }, "state.a[1].b is 2 and then 3"],
  [{ a: [1] }, { a: [1, 2] }, "state.a[1] is null and then 2"],
  [{ a: 1 }, {}, "state.a is 1 and then null"],
  [{ a: [] }, { a: {} }, "state.a is [] and then {}"],
  ["x", null, 'state is "x" and then null'],
])("the first difference of %j and %j is found", (first, second, where) => {
  expect(firstDifference(first, second, "state")).toBe(where);
});

test("equal values do not differ, whatever the order of their members", () => {
  expect(firstDifference({ a: 1, b: [2] }, { b: [2], a: 1 }, "")).toBeNull();
});

test("a long value is cut in the report", () => {
  expect(firstDifference("x".repeat(500), "", "s")?.length).toBeLessThan(90);
});
