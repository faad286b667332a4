import { expect, test } from "vitest";
import { pointFrom, pointText } from "../../src/web/components/plot-point.ts";

const SERIES = [
  { name: "mean", values: [0.25, 0.5, null], low: [0, 0.1, null], high: [1, 0.9, null] },
  { name: "smoothed", values: [0.25, 1 / 3, null] },
];

test("a point of a chart lists each series with its value, and its interval if it has one", () => {
  expect(pointText("step 1", SERIES, 1)).toBe("step 1: mean 0.5 (0.1 to 0.9), smoothed 0.333");
});

test("a value that was not measured at a point is shown as such, not as 0", () => {
  expect(pointText("step 2", SERIES, 2)).toBe("step 2: mean not measured, smoothed not measured");
});

test("arrow keys move from point to point and stay within the chart; other keys are ignored", () => {
  expect([0, 3].map((at) => pointFrom("ArrowLeft", at, 4))).toEqual([0, 2]);
  expect([0, 3].map((at) => pointFrom("ArrowRight", at, 4))).toEqual([1, 3]);
  expect([pointFrom("Home", 2, 4), pointFrom("End", 2, 4)]).toEqual([0, 3]);
  expect(["ArrowUp", "j", "Tab"].map((key) => pointFrom(key, 1, 4))).toEqual([null, null, null]);
});
