import { expect, test } from "vitest";
import type { UsageResult } from "../../src/billing/wire.ts";
import { costOf, judgesText, totalText } from "../../src/web/pages/usage/cost.ts";
import { DAY_S, dayId, dayText, hourText, periodOf } from "../../src/web/pages/usage/period.ts";

/** 30 November 2026, 16:05 UTC. */
const NOW = 1_796_054_700;
const TODAY = NOW - (NOW % DAY_S);

test("a period of the URL is whole days of UTC, and today by default", () => {
  const spanOf = (period: string | undefined) => {
    const { id, start, end } = periodOf({ period }, NOW);
    return [id, (start - TODAY) / DAY_S, (end - TODAY) / DAY_S];
  };
  expect(spanOf(undefined)).toEqual(["today", 0, 1]);
  expect(spanOf("yesterday")).toEqual(["yesterday", -1, 0]);
  expect(spanOf("week")).toEqual(["week", -6, 1]);
  expect(spanOf("2026-11-24")).toEqual(["2026-11-24", -6, -5]);
  for (const invalid of ["2026-10-01", "2026-12-01", "2026-13-45", "<b>"]) expect(spanOf(invalid)[0]).toBe("today");
});

test("days and hours are named in UTC", () => {
  expect([dayId(TODAY), dayText(TODAY), hourText(TODAY + 14 * 3600)]).toEqual(["2026-11-30", "30 Nov", "14:00"]);
});

/** Four calls of the policy, all with a price, and what is given. */
function resultOf(given: Partial<UsageResult>): UsageResult {
  const counts = { judge_calls: 0, judge_input_tokens: 0, judge_output_tokens: 0, policy_micros: 0, judge_micros: 0 };
  const none = { rollouts: 1, scored: 1, input_tokens: 9, output_tokens: 1 };
  return { ...none, ...counts, calls: 4, priced_calls: 4, cost_micros: 0, ...given } as UsageResult;
}

test("the cost of judges is exact if all calls have a price, and else says that some have none", () => {
  const judges = { judge_calls: 2, judge_micros: 500_000 };
  const textOf = (given: Partial<UsageResult>) => judgesText(costOf([resultOf({ ...judges, ...given })]));
  expect(textOf({ priced_calls: 6 })).toBe("$0.50");
  expect(textOf({ priced_calls: 2 })).toBe("at least $0.50; some calls have no price");
  // The four calls without a price may all be of the policy: the judges may cost nothing.
  expect(textOf({ priced_calls: 2, judge_micros: 0 })).toBe("at least $0.00; some calls have no price");
  expect(textOf({ priced_calls: 0, judge_micros: 0 })).toBe("unknown");
});

test("a total is a lower bound if the cost of some calls is unknown", () => {
  const priced = resultOf({ policy_micros: 300_000, cost_micros: 200_000 });
  expect(totalText(costOf([priced]))).toBe("$0.50");
  expect(totalText(costOf([priced, resultOf({ priced_calls: 1 })]))).toBe("$0.50 or more");
  expect(totalText(costOf([resultOf({ priced_calls: 0 })]))).toBe("unknown");
  expect(totalText(costOf([]))).toBe("$0.00");
  const judged = costOf([priced, resultOf({ judge_calls: 2, priced_calls: 6, judge_micros: 400_000 })]);
  expect([judgesText(judged), totalText(judged)]).toEqual(["$0.40", "$0.90"]);
  expect(judgesText(costOf([priced]))).toBe("–");
  expect(costOf([priced, priced])).toMatchObject({ rollouts: 2, tokens: 20, calls: 8, unpriced: 0 });
});
