/** When a call may be sent again, by the model's log and by the record of its rollout. */
import { expect, test } from "vitest";
import { violationsOf } from "./check.ts";
import { finishedRun, saidTo } from "./finished-run.ts";

/** The violations if the second call of a rollout arrived at these milliseconds, and timed out in these seconds. */
function twice(times: readonly [number, number], seconds: readonly number[]): string[] {
  const good = finishedRun([]);
  const requests = times.map((at) => ({ at, ended: "answered" as const, said: saidTo("a:1") }));
  const call = { rollout: "a", turn: 1, requests, changed: false };
  const told = { ...good.told, timed_out: new Map([["a:1", seconds]]) };
  const found = violationsOf({ ...good, calls: new Map(good.calls).set("a:1", call), told });
  return found.map(({ rule }) => rule);
}

test("a call that timed out may be sent again, however late the model received it", () => {
  // The turn before was requested at 10 ms, so this call left later than that.
  expect(twice([4900, 7500], [5])).toEqual([]);
  expect(twice([9000, 11_000], [5, 10])).toEqual([]);
});

test("a call that did not time out between the two, or too early for a timeout, is reported", () => {
  for (const noted of [[], [4], [8]]) expect([noted, twice([4900, 7500], noted)]).toEqual([noted, ["sampled_again"]]);
  expect(twice([3000, 3900], [3])).toEqual(["sampled_again"]);
  expect(twice([9000, 11_000], [7, 10])).toEqual(["sampled_again"]);
});
