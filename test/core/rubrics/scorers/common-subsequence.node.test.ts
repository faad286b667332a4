/** Compares the longest common subsequence with the table that defines it. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commonSubsequence } from "../../../../src/core/rubrics/scorers/common-subsequence.ts";
import { WORK_LIMITS } from "../../../../src/core/rubrics/work.ts";

function byTable(a: readonly string[], b: readonly string[]): number {
  let above = new Array<number>(b.length + 1).fill(0);
  for (const item of a) {
    const row = [0];
    for (const [at, other] of b.entries()) {
      row.push(item === other ? (above[at] ?? 0) + 1 : Math.max(above[at + 1] ?? 0, row[at] ?? 0));
    }
    above = row;
  }
  return above.at(-1) ?? 0;
}

test("the length equals that of the table, for few and for many different items, and for lengths around a multiple of 32", () => {
  const items = fc
    .constantFrom(1, 2, 4, 100)
    .chain((kinds) => fc.array(fc.nat(kinds - 1).map(String), { maxLength: 130, size: "max" }));
  fc.assert(
    fc.property(items, items, (a, b) => {
      expect(commonSubsequence(a, b)).toBe(byTable(a, b));
    }),
    { numRuns: 1000 },
  );
});

test("a comparison that would take too long is refused before it starts", () => {
  const long = new Array<string>(Math.ceil(Math.sqrt(WORK_LIMITS.scoreSteps * 200)) + 1).fill("x");
  const refusal = "comparing 34,643 with 34,643 words would exceed the limit of 6,000,000 steps";
  expect(() => commonSubsequence(long, long, {}, "words")).toThrow(refusal);
});
