/** The prices that a run's own cap counts: those of its endpoints, and the maximum the platform charges. Pure. */
import type { TokenPrices } from "../../contract/judgement.ts";
import type { ChargeLines, OfferedTokens } from "../../contract/money.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { CostPrices } from "./call-budget.ts";

/** Tokens of calls whose replies were received. `cached_tokens` are included in `prompt_tokens`. */
export interface TokensUsed {
  readonly prompt_tokens: number;
  readonly cached_tokens?: number | undefined;
  readonly completion_tokens: number;
}

/** Micro-dollars; null for a run without a cap. */
export function capOf({ money }: Pick<RunSpec, "money">): number | null {
  return money?.max_cost_micros ?? null;
}

export function policyCosts({ money }: Pick<RunSpec, "money">): CostPrices {
  const call = Math.ceil((money?.prices?.fees.thousand_turns_micros ?? 0) / 1000);
  return costsOf(money?.policy ?? undefined, money?.prices?.policy ?? undefined, call);
}

/** `judge`: its name in the rubric. */
export function judgeCosts({ money, judges }: Pick<RunSpec, "money" | "judges">, judge: string): CostPrices {
  return costsOf(judges?.[judge]?.prices, money?.prices?.judges[judge], 0);
}

/** The fixed cost of a rollout. `carried`: it takes over a trajectory, and is only scored. */
export function baseCost({ money }: Pick<RunSpec, "money">, carried: boolean): number {
  const { rollout_micros = 0, scoring_micros = 0 } = money?.prices?.fees ?? {};
  return scoring_micros + (carried ? 0 : rollout_micros);
}

function costsOf(own: TokenPrices | undefined, platform: OfferedTokens | undefined, call: number): CostPrices {
  const { input_per_mtok_micros: fresh = 0, cached_input_per_mtok_micros: cached = 0 } = platform ?? {};
  return {
    input: (own?.input_per_mtok_micros ?? 0) + Math.max(fresh, cached),
    output: (own?.output_per_mtok_micros ?? 0) + (platform?.output_per_mtok_micros ?? 0),
    call,
  };
}

export function sumOfLines(lines: ChargeLines): number {
  return Object.values(lines).reduce((sum, micros) => sum + micros, 0);
}
