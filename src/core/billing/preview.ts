/** What a run would probably cost, from what others have used. Pure. */

import type { TokenPrices } from "../../contract/judgement.ts";
import type { ExpectedMicros } from "../../contract/run-preview.ts";
import type { PinnedPrices } from "../../contract/run-spec.ts";

/** A run that has ended, in sums over its rollouts. */
export interface PastRun {
  readonly rollouts: number;
  readonly scored: number;
  readonly turns: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  /** Null where it cannot be known. */
  readonly judge_micros: number | null;
}

const MILLION = 1_000_000;

/** Micro-dollars of so many rollouts, null of an unknown number. `microsOf`: of all rollouts of a run; null where that cannot be known. */
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

/** What the platform would charge its rollouts, as if none were free. */
export function chargedMicros({ fees, policy }: PinnedPrices, run: PastRun): number {
  const cached = Math.min(run.cached_tokens, run.prompt_tokens);
  const tokens =
    (run.prompt_tokens - cached) * (policy?.input_per_mtok_micros ?? 0) +
    cached * (policy?.cached_input_per_mtok_micros ?? 0) +
    run.completion_tokens * (policy?.output_per_mtok_micros ?? 0);
  const turns = (run.turns * fees.thousand_turns_micros) / 1000;
  return run.rollouts * fees.rollout_micros + turns + run.scored * fees.scoring_micros + tokens / MILLION;
}

export function tokenMicros(prices: TokenPrices, run: PastRun): number {
  const { input_per_mtok_micros: input, output_per_mtok_micros: output } = prices;
  return (run.prompt_tokens * input + run.completion_tokens * output) / MILLION;
}
