/** When a call may be sent again, by the model's log and by the record of its rollout. */
import { expect, test } from "vitest";
import { violationsOf } from "./check.ts";
import { finishedRun, saidTo } from "./finished-run.ts";
import { CALL_TIMEOUT_MS } from "./limits.ts";

/** The violations if the second call of a rollout arrived at these milliseconds, and timed out in these seconds. */
function twice(times: readonly [number, number], seconds: readonly number[]): string[] {
  const good = finishedRun([]);
  const requests = times.map((at) => ({ at, ended: "answered" as const, said: saidTo("a:1") }));
  const call = { rollout: "a", turn: 1, requests, changed: false };
  const told = { ...good.told, timed_out: new Map([["a:1", seconds]]) };
  const found = violationsOf({ ...good, calls: new Map(good.calls).set("a:1", call), told });
  return found.map(({ rule }) => rule);
}

const TIMEOUT_S = CALL_TIMEOUT_MS / 1000;

test("a call that timed out may be sent again, however late the model received it", () => {
  // The turn before was requested at 10 ms, so this call left later than that.
  expect(twice([CALL_TIMEOUT_MS - 100, CALL_TIMEOUT_MS + 2500], [TIMEOUT_S])).toEqual([]);
  expect(twice([2 * CALL_TIMEOUT_MS - 1000, 2 * CALL_TIMEOUT_MS + 1000], [TIMEOUT_S, 2 * TIMEOUT_S])).toEqual([]);
});

test("a call that did not time out between the two, or too early for a timeout, is reported", () => {
  const again = ["sampled_again"];
  for (const noted of [[], [TIMEOUT_S - 1], [TIMEOUT_S + 3]]) {
    expect([noted, twice([CALL_TIMEOUT_MS - 100, CALL_TIMEOUT_MS + 2500], noted)]).toEqual([noted, again]);
  }
  expect(twice([CALL_TIMEOUT_MS - 2000, CALL_TIMEOUT_MS - 1100], [TIMEOUT_S - 2])).toEqual(again);
  const late = [2 * CALL_TIMEOUT_MS - 1000, 2 * CALL_TIMEOUT_MS + 1000] as const;
  expect(twice(late, [TIMEOUT_S + 2, 2 * TIMEOUT_S])).toEqual(again);
});
