import { expect, test } from "vitest";
import { chargedMicros } from "../../src/billing/preview.ts";
import type { PastRun } from "../../src/core/costs/expected.ts";

const RUN: PastRun = {
  ...{ rollouts: 10, scored: 8, turns: 30, prompt_tokens: 4000, cached_tokens: 1000, completion_tokens: 2000 },
  judged: { prompt_tokens: 3000, completion_tokens: 500 },
  judge_micros: 50,
};
const FEES = {
  rollout_micros: 60,
  thousand_turns_micros: 12_000,
  scoring_micros: 20,
  push_micros: 0,
  gb_day_micros: 0,
};
const PRICES = { version: "1", fees: FEES, judges: {}, policy: null };

test("fees are for each rollout, turn and score, and tokens of a model that the platform sells", () => {
  expect(chargedMicros(PRICES, RUN, ["judge"])).toBe(600 + 360 + 160);
  const policy = {
    input_per_mtok_micros: 1_000_000,
    cached_input_per_mtok_micros: 100_000,
    output_per_mtok_micros: 2_000_000,
  };
  expect(chargedMicros({ ...PRICES, policy }, RUN, [])).toBe(1120 + 3000 + 100 + 4000);
});

test("tokens of judges that the platform sells are included; with different prices the result is unknown", () => {
  const dear = { input_per_mtok_micros: 1_000_000, cached_input_per_mtok_micros: 0, output_per_mtok_micros: 2_000_000 };
  const cheap = { ...dear, output_per_mtok_micros: 1_000_000 };
  const charged = (judges: Readonly<Record<string, typeof dear>>, asked: readonly string[], run = RUN) =>
    chargedMicros({ ...PRICES, judges }, run, asked);
  expect(charged({ one: dear }, ["one"])).toBe(1120 + 3000 + 1000);
  expect(charged({ one: dear, other: dear }, ["one", "other"])).toBe(1120 + 3000 + 1000);
  expect(charged({ one: dear, other: cheap }, ["one", "other"])).toBeNull();
  expect(charged({ one: dear }, ["one", "of another endpoint"])).toBeNull();
  const unjudged = { ...RUN, judged: { prompt_tokens: 0, completion_tokens: 0 } };
  expect(charged({ one: dear, other: cheap }, ["one", "other"], unjudged)).toBe(1120);
});
