/** An ended rollout as an item for the ledger. */
import { expect, test } from "vitest";
import { settledEnd } from "../../src/billing/charging.ts";
import type { RunSpec } from "../../src/contract/run-spec.ts";
import type { SettledRow } from "../../src/kernel/run/ended-rows.ts";
import { RUN_SPEC } from "../kernel/run-rows.ts";

const ROW: SettledRow = {
  ...{ id: "ro_1", carries: null, outcome: "scored", turns: 2, calls: 3, prompt_tokens: 5, completion_tokens: 7 },
  ...{ cached_tokens: 0, judge_calls: 0, judge_prompt_tokens: 0, judge_completion_tokens: 0, lost_calls: 1 },
  ...{ judge_micros: null, unmetered: 0 },
  ...{ charge: '{"rollout":60}', ended_at: 500, finish_seq: 9 },
};

test("a rollout is posted at the time it ended, and counts its usage", () => {
  expect(settledEnd(RUN_SPEC, ROW, 900)).toEqual({
    ...{ n: 9, kind: "rollout", source_id: "ro_1", at: 500, lines: { rollout: 60 } },
    use: { rollouts: 1, scored: 1, turns: 2, calls: 3, input_tokens: 5, output_tokens: 7, lost_calls: 1 },
  });
  expect(settledEnd(RUN_SPEC, { ...ROW, ended_at: null, outcome: "failed" }, 900)).toMatchObject({ at: 900 });
});

test("the cost of calls is counted by the prices of their endpoints, as far as it is known", () => {
  const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
  const spec: RunSpec = { ...RUN_SPEC, money: { payer: "key_a", prices: null, policy: prices } };
  const judged = { ...ROW, judge_calls: 2, judge_prompt_tokens: 9, judge_completion_tokens: 1 };
  const priced = (of: RunSpec, row: SettledRow) => {
    const { policy_micros = 0, judge_micros = 0, priced_calls = 0 } = settledEnd(of, row, 900).use;
    return [policy_micros, judge_micros, priced_calls];
  };
  expect(priced(spec, ROW)).toEqual([19, 0, 3]);
  expect(priced(spec, { ...judged, judge_micros: 40 })).toEqual([19, 40, 5]);
  expect(priced(spec, judged)).toEqual([19, 0, 3]);
  expect(priced(spec, { ...judged, judge_micros: 40, unmetered: 1 })).toEqual([0, 40, 2]);
  expect(priced(RUN_SPEC, judged)).toEqual([0, 0, 0]);
});

test("a carried rollout is posted now, since its original ended long before, and is not counted again", () => {
  const settled = settledEnd(RUN_SPEC, ROW, 900);
  const { rollouts: _, ...use } = settled.use;
  const carried = { kind: "rescore", at: 900, use };
  expect(settledEnd(RUN_SPEC, { ...ROW, carries: 4 }, 900)).toEqual({ ...settled, ...carried });
  expect(settledEnd({ ...RUN_SPEC, rescore: { run_id: "run_before" } }, ROW, 900)).toMatchObject(carried);
});
