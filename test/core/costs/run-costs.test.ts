/** The prices of a run's own cap: the owner's and the platform's together, at the maximal cost of a call. */
import { expect, test } from "vitest";
import type { RunMoney } from "../../../src/contract/run-spec.ts";
import { baseCost, capOf, judgeCosts, policyCosts } from "../../../src/core/costs/run-costs.ts";

const FEES = {
  rollout_micros: 60,
  thousand_turns_micros: 12_001,
  scoring_micros: 20,
  push_micros: 7,
  gb_day_micros: 9,
};
const OWN = { input_per_mtok_micros: 5, output_per_mtok_micros: 7 };

function offered(fresh: number, cached: number) {
  return { input_per_mtok_micros: fresh, cached_input_per_mtok_micros: cached, output_per_mtok_micros: 1000 };
}

function money(policy: ReturnType<typeof offered>): { readonly money: RunMoney } {
  const prices = { version: "v", fees: FEES, policy, judges: { ours: offered(40, 90) } };
  return { money: { payer: "key_a", prices, policy: OWN, max_cost_micros: 900 } };
}

test("a sent token counts with the higher of its two prices", () => {
  expect(policyCosts(money(offered(300, 30))).input).toBe(305);
  expect(policyCosts(money(offered(30, 300))).input).toBe(305);
  expect(judgeCosts({ ...money(offered(1, 1)), judges: {} }, "ours").input).toBe(90);
});

test("the owner's prices and the platform's are added, and a call costs a thousandth of the fee for turns, rounded up", () => {
  expect(policyCosts(money(offered(300, 30)))).toEqual({ input: 305, output: 1007, call: 13 });
  expect(policyCosts({ money: { payer: "key_a", prices: null, policy: OWN } })).toEqual({
    input: 5,
    output: 7,
    call: 0,
  });
  expect(policyCosts({})).toEqual({ input: 0, output: 0, call: 0 });
});

test("a judge's calls count its own prices and the platform's, and no fee for turns", () => {
  const judges = { ours: { endpoint_id: "ep", model: "m", sampling: {}, prices: OWN } };
  expect(judgeCosts({ ...money(offered(1, 1)), judges }, "ours")).toEqual({ input: 95, output: 1007, call: 0 });
  expect(judgeCosts({ ...money(offered(1, 1)), judges }, "theirs")).toEqual({ input: 0, output: 0, call: 0 });
});

test("every rollout counts its fee and its scoring, or only its scoring if it took over a trajectory", () => {
  const run = money(offered(1, 1));
  expect([baseCost(run, false), baseCost(run, true), baseCost({}, false)]).toEqual([80, 20, 0]);
  expect([capOf(run), capOf({})]).toEqual([900, null]);
});
