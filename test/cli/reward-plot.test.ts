import { expect, test } from "vitest";
import { type RewardPoint, rewardPlot, smoothed } from "../../src/cli/terminal/reward-plot.ts";
import { displayWidth } from "../../src/cli/terminal/text.ts";

const RISING: RewardPoint[] = Array.from({ length: 20 }, (_, at) => {
  return { step: at + 1, reward: 0.3 + 0.035 * at };
});

function drawn(points: readonly RewardPoint[], columns = 60, rows = 11): string[] {
  return rewardPlot({ points, lastStep: 40, level: 0.3 }, { columns, rows, colour: false });
}

test("the curve starts at the left and ends at the current step; the dashes are at the level", () => {
  expect(drawn(RISING)).toEqual([
    "1.00 ┤                       ·· ·",
    "     │                   ·· ⢀⡠⠔⠊⠁",
    "0.75 ┤               ·· ⣀⠤⠒⠊⠁",
    "     │           ··⢀⡠⠤⠒⠉",
    "0.50 ┤       ·⣀⠤⠔⠒⠉⠁",
    "     │ ·⢀⡠⠤⠒⠊⠉",
    "0.25 ┤⠒⠉⠁┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄",
    "     │",
    "0.00 ┤",
    "     └──────────────────────────────────────────────────────",
    "      1                                                   40",
  ]);
});

test("a curve keeps its positions while it grows", () => {
  // The first seven of ten steps: the last cell may differ, because the line continues from there.
  const start = (lines: string[]) => lines.map((line) => line.padEnd(14).slice(0, 14));
  expect(start(drawn(RISING))).toEqual(start(drawn(RISING.slice(0, 10))));
});

test("no line is wider than requested, whatever the rewards; and without enough space there is no plot", () => {
  const wild = [-3, 0, 250, 0.5].map((reward, at) => ({ step: at + 1, reward }));
  for (let columns = 1; columns < 100; columns += 1) {
    for (const points of [[], RISING, wild]) {
      for (const line of drawn(points, columns, 8)) {
        expect(displayWidth(line)).toBeLessThanOrEqual(columns);
      }
    }
  }
  expect(drawn(RISING, 12)).toEqual([]);
  expect(drawn(RISING, 60, 4)).toEqual([]);
});

test("rewards beyond 0 and 1 widen the scale", () => {
  const wide = drawn([
    { step: 1, reward: -2 },
    { step: 2, reward: 10 },
  ]);
  const labels = wide.map((line) => line.slice(0, 4).trim()).filter((label) => label !== "");
  expect(labels).toEqual(["10.0", "7.50", "5.00", "2.50", "0.00"]);
});

test("a training of one step, and one of none yet, are drawn", () => {
  const size = { columns: 40, rows: 8, colour: false };
  expect(rewardPlot({ points: [], lastStep: 1, level: null }, size)).toHaveLength(8);
  const [one] = RISING;
  const text = rewardPlot({ points: one ? [one] : [], lastStep: 1, level: null }, size).join("");
  expect(text).toMatch(/[\u2801-\u28ff]/);
});

test("colour changes no shape", () => {
  const size = { columns: 60, rows: 11 };
  const plot = { points: RISING, lastStep: 40, level: 0.3 };
  const coloured = rewardPlot(plot, { ...size, colour: true });
  expect(coloured.join("")).toContain("\x1b[32m");
  const plain = rewardPlot(plot, { ...size, colour: false });
  expect(coloured.map(displayWidth)).toEqual(plain.map(displayWidth));
});

test("smoothing is unbiased: a constant does not change, and the first mean is the first reward", () => {
  const constant = RISING.map(({ step }) => ({ step, reward: 0.4 }));
  for (const { reward } of smoothed(constant)) expect(reward).toBeCloseTo(0.4, 12);
  expect(smoothed(RISING)[0]).toEqual(RISING[0]);
});
