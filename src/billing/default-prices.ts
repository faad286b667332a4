/** The first price list of a deployment. docs/cost.md has the platform's own costs, docs/billing.md the margins. */
import type { PriceList } from "../contract/money.ts";

export const DEFAULT_PRICES: PriceList = {
  object: "price_list",
  version: "2026-11",
  effective_from: 0,
  fees: {
    rollout_micros: 60,
    thousand_turns_micros: 12_000,
    scoring_micros: 20,
    push_micros: 1000,
    gb_day_micros: 1000,
  },
  models: [],
};
