/** Estimates the cost of a run from the usage of earlier runs. Pure. */
import type { TokenPrices } from "../../contract/judgement.ts";
import type { ExpectedMicros } from "../../contract/run-preview.ts";
import type { TokensUsed } from "./run-costs.ts";

/** A run that has ended, in sums over its rollouts; its own tokens are those of the sampled model. */
export interface PastRun extends TokensUsed {
  readonly rollouts: number;
  readonly scored: number;
  readonly turns: number;
  /** Tokens of all its judges together. */
  readonly judged: TokensUsed;
  /** Their cost by the prices of their endpoints. Null if it is unknown. */
  readonly judge_micros: number | null;
}

const MILLION = 1_000_000;

/**
 * The estimated micro-dollars of so many rollouts; null if their number or the cost of every past run is unknown.
 * `microsOf` returns the cost of all rollouts of a past run; null if it is unknown. A single past run gives no range.
 */
export function expectedOf(
  past: readonly PastRun[],
  rollouts: number | null,
  microsOf: (run: PastRun) => number | null,
): ExpectedMicros {
  const known = past.flatMap((run) => {
    const micros = run.rollouts === 0 ? null : microsOf(run);
    return micros === null ? [] : [{ micros, rollouts: run.rollouts }];
  });
  if (known.length === 0 || rollouts === null) return null;
  const sum = (of: (run: { micros: number; rollouts: number }) => number) =>
    known.reduce((all, run) => all + of(run), 0);
  const means = known.map((run) => run.micros / run.rollouts);
  const several = known.length > 1;
  return {
    expected: Math.round((sum(({ micros }) => micros) / sum((run) => run.rollouts)) * rollouts),
    low: several ? Math.round(Math.min(...means) * rollouts) : null,
    high: several ? Math.round(Math.max(...means) * rollouts) : null,
  };
}

/** By the prices of the endpoint's owner, who has none for cached tokens. */
export function tokenMicros(prices: TokenPrices, run: PastRun): number {
  const { input_per_mtok_micros: input, output_per_mtok_micros: output } = prices;
  return (run.prompt_tokens * input + run.completion_tokens * output) / MILLION;
}
