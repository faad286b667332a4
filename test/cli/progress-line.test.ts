import { expect, test } from "vitest";
import { progressLine, shareOut } from "../../src/cli/terminal/display.ts";
import { displayWidth } from "../../src/cli/terminal/text.ts";
import { aRun } from "./a-run.ts";

const RUN = aRun({
  planned: 20,
  pending: 4,
  in_flight: 4,
  scored: 8,
  unscored: { scorer: 1 },
  failed: { provider: 2 },
  cancelled: { user: 1 },
});
const PACE = { turnsPerSecond: 12.3, secondsLeft: 83 };

function drawn(columns: number, run = RUN): string {
  return progressLine(run, PACE, { columns, colour: false, label: "calculator", labelWidth: 10 });
}

test("a wide terminal gets the whole line", () => {
  expect(drawn(120)).toBe(
    "calculator  ████████████▒▒xxx->>>>>>······  12/20 · 0.500 ± 0.100 · 12 turns/s · 1,234 tokens · 1 min 23 s left",
  );
});

test("a narrow one gets a shorter line, and never one that is too long", () => {
  expect(drawn(70)).toBe("calculator  ███████▒x->>>>···  12/20 · 0.500 ± 0.100 · 1 min 23 s left");
  expect(drawn(50)).toBe("calculator  ██████▒x->>>···  12/20 · 0.500 ± 0.100");
  expect(drawn(20)).toBe("calculator  12/20");
  for (let columns = 1; columns < 130; columns += 1) {
    expect(displayWidth(drawn(columns))).toBeLessThanOrEqual(columns);
  }
});

test("a waiting run says why, and one that ended badly how", () => {
  const waiting = aRun({ pending: 10 }, { status_reason: { state: "endpoint_down", reason: null } });
  expect(drawn(120, waiting)).toContain(" · endpoint_down");
  expect(drawn(120, aRun({}, { status: "failed", status_reason: null }))).toContain(" · failed");
});

test("colours mark the segments and change nothing else", () => {
  const line = { columns: 60, label: "e", labelWidth: 1 };
  const coloured = progressLine(RUN, PACE, { ...line, colour: true });
  expect(coloured).toContain("\x1b[32m");
  expect(displayWidth(coloured)).toBe(displayWidth(progressLine(RUN, PACE, { ...line, colour: false })));
});

test.each([
  [[50, 50], 100, 10, [5, 5]],
  [[0, 0], 100, 10, [0, 0]],
  [[9999, 1], 10_000, 10, [9, 1]],
  [[1, 0], 10_000, 10, [1, 0]],
  [[100, 0], 100, 10, [10, 0]],
  [[33, 33, 34], 100, 10, [3, 4, 3]],
])("%j of %d in %d cells is %j: every amount above zero is visible", (amounts, whole, cells, expected) => {
  expect(shareOut(amounts, whole, cells)).toEqual(expected);
});
