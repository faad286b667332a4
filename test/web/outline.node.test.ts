/** The data of a rollout's timeline, and which tool results read like errors. */
import { expect, test } from "vitest";
import { looksFailed } from "../../src/contract/looks-failed.ts";
import type { OutlineTurn } from "../../src/contract/turns.ts";
import { OutlineBuild, turnAt } from "../../src/web/pages/rollout/outline.ts";

function turnOf(index: number, more: Partial<OutlineTurn> = {}): OutlineTurn {
  return {
    ...{ index, at_ms: 1000 * (index + 1), latency_ms: 100 + index, calls: 1, messages: 1, tool_calls: 0, tools: [] },
    ...{ failed: 0, stored_bytes: 10, is_truncated: false, forked: false, ...more },
  };
}

test("an outline names the slowest turns, and marks a failed result at the turn that called for it", () => {
  const build = new OutlineBuild(40);
  for (let index = 0; index < 40; index += 1) {
    build.add(turnOf(index, { ...(index === 7 && { latency_ms: 900, calls: 3 }), ...(index === 8 && { failed: 2 }) }));
  }
  const { slowest, failures, failed, from, to, at } = build.end();
  expect(slowest.map(({ index }) => index)).toEqual([7, 39, 38, 37, 36]);
  expect(failures).toEqual([{ index: 7, why: "the model was called 3 times, 2 results read like errors" }]);
  expect([failed[7], failed[8], from, to]).toEqual([1, 0, 0, 40_000]);
  expect([turnAt({ at }, 0), turnAt({ at }, 1001), turnAt({ at }, 1e9)]).toEqual([0, 1, 39]);
});

test("if a turn records which of its calls failed, the text of the results is not checked", () => {
  const build = new OutlineBuild(4);
  build.add(turnOf(0, { tool_calls: 2, tool_calls_failed: 0 }));
  build.add(turnOf(1, { failed: 2, tool_calls: 1, tool_calls_failed: 1 }));
  build.add(turnOf(2, { tool_calls: 1 }));
  build.add(turnOf(3, { failed: 1 }));
  const { failures, failed } = build.end();
  expect(failures).toEqual([
    { index: 1, why: "1 tool call failed" },
    { index: 2, why: "1 results read like errors" },
  ]);
  expect([...failed]).toEqual([0, 1, 1, 0]);
});

test("failed results of a turn that continues another one than the last are marked where they are shown", () => {
  const build = new OutlineBuild(3);
  for (const index of [0, 1]) build.add(turnOf(index));
  build.add(turnOf(2, { after: 0, failed: 1 }));
  expect(build.end().failures).toEqual([{ index: 2, why: "1 results read like errors" }]);
});

test.each([
  ["Error: no such file", true],
  ['{"error": "denied"}', true],
  ["Traceback (most recent call last):", true],
  ["ValueError: x", true],
  ["bad arguments for add: a: Invalid input", true],
  ["there is no tool named rm", true],
  ["warehouse lookup failed: no item 7", true],
  ['carrier: unknown city "Berns"', true],
  ["request timed out", true],
  ["4 of 4 passed, none failed", false],
  ["36", false],
  ["errors: 0 of 3 files", false],
  ["The error-free way", false],
])("a result that says %j reads like an error: %s", (text, expected) => {
  expect(looksFailed(text)).toBe(expected);
});
