/** What a rollout is charged, depending on how it ended. */
import { expect, test } from "vitest";
import { chargeOf, listAt, type RolloutUse } from "../../src/billing/charge.ts";
import { firstEstimate, nextEstimate } from "../../src/billing/estimate.ts";
import type { Outcome } from "../../src/contract/run.ts";
import type { PinnedPrices } from "../../src/contract/run-spec.ts";
import { sumOfLines } from "../../src/core/costs/run-costs.ts";

const TOKENS = {
  input_per_mtok_micros: 3_000_000,
  cached_input_per_mtok_micros: 300_000,
  output_per_mtok_micros: 15_000_000,
};
const FEES = {
  rollout_micros: 60,
  thousand_turns_micros: 12_000,
  scoring_micros: 20,
  push_micros: 7,
  gb_day_micros: 9,
};
const PRICES: PinnedPrices = { version: "v", fees: FEES, policy: TOKENS, judges: { ours: TOKENS } };

const USED = { prompt_tokens: 100, cached_tokens: 10, completion_tokens: 3 };
const ALL = {
  ...{ rollout: 60, turns: 24, input_tokens: 270, cached_input_tokens: 3, output_tokens: 45 },
  ...{ judge_tokens: 318, scoring: 20 },
};
const { scoring: _, ...UNSCORED } = ALL;

function use(outcome: Outcome, reason: string | null, more: Partial<RolloutUse> = {}): RolloutUse {
  return {
    ...{ outcome, reason, error: null, left: true, call_timeout_s: 600, carried: false, turns: 2, policy: USED },
    judged: [
      { judge: "ours", ...USED },
      { judge: "theirs", ...USED },
    ],
    ...more,
  };
}

test("a scored rollout is charged by line, with cached tokens separate, and only for sold judges", () => {
  expect(chargeOf(PRICES, use("scored", null))).toEqual(ALL);
});

test("the list in force is the one that started last, from its first second; of two equals the later one", () => {
  const list = (effective_from: number, name: string) => ({ effective_from, name });
  const lists = [list(200, "b"), list(100, "a"), list(100, "a again")];
  expect([99_999, 100_000, 199_999, 200_000].map((now) => listAt(lists, now)?.name)).toEqual([
    ...[undefined, "a again", "a again", "b"],
  ]);
  expect(listAt([], 5)).toBeNull();
});

test("tokens of the customer's own endpoint cost nothing, and at most the prompt counts as cached", () => {
  const own = { ...PRICES, policy: null, judges: {} };
  expect(chargeOf(own, use("scored", null))).toEqual({ rollout: 60, turns: 24, scoring: 20 });
  const policy = { prompt_tokens: 5, cached_tokens: 9, completion_tokens: 0 };
  expect(chargeOf(PRICES, use("scored", null, { policy, judged: [] }))).toMatchObject({ cached_input_tokens: 2 });
});

test.each([
  ["unscored", "judge", null],
  ["unscored", "scorer", null],
  ["failed", "environment", "EnvError"],
  ["failed", "timeout", "StageTimeoutError"],
  ["failed", "platform", "EndpointMoved"],
  ["cancelled", "user", null],
  ["cancelled", "deadline", null],
  ["cancelled", "budget", null],
] as const)("%s: %s (%s) pays for everything except scoring", (outcome, reason, error) => {
  expect(chargeOf(PRICES, use(outcome, reason, { error }))).toEqual(UNSCORED);
});

test.each([
  ["failed", "provider", "ModelError"],
  ["failed", "timeout", "ModelError"],
  ["failed", "platform", "InfraError"],
  ["failed", "environment_changed", "InfraError"],
  ["failed", "tool_outcome_unknown", "ToolError"],
  ["cancelled", "stale", null],
  ["cancelled", "overload", null],
  ["cancelled", "version_reset", null],
] as const)("%s: %s (%s) is free", (outcome, reason, error) => {
  expect(chargeOf(PRICES, use(outcome, reason, { error }))).toEqual({});
});

test("after a timeout shorter than the default, the model's earlier answers are charged", () => {
  const late = { error: "ModelError", call_timeout_s: 599 };
  expect(chargeOf(PRICES, use("failed", "timeout", late))).toEqual(UNSCORED);
  expect(chargeOf(PRICES, use("failed", "provider", late))).toEqual({});
});

test("without a trajectory nothing is charged, and a carried rollout pays only for its judges and its scoring", () => {
  expect(chargeOf(PRICES, use("cancelled", "user", { left: false }))).toEqual({});
  expect(chargeOf(PRICES, use("scored", null, { carried: true }))).toEqual({ judge_tokens: 318, scoring: 20 });
  expect(chargeOf(PRICES, use("failed", "environment", { carried: true, judged: [] }))).toEqual({});
});

test("first rollouts are estimated at ten turns, and later ones at one and a half times the average so far", () => {
  const own = { ...PRICES, policy: null };
  expect(firstEstimate(own, { carried: false, judges: [] })).toBe(60 + 120 + 20);
  expect(firstEstimate(own, { carried: true, judges: ["ours", "theirs"] })).toBe(6000 + 7500 + 20);
  const short = firstEstimate(PRICES, { carried: false, judges: [], max_tokens: 100 });
  expect(short).toBe(60 + 120 + 20 + 60_000 + 15_000);
  expect(nextEstimate(short, { charged: 0, ended: 3 })).toBe(short);
  expect(nextEstimate(short, { charged: 101, ended: 3 })).toBe(51);
  expect(sumOfLines(ALL)).toBe(740);
});
