/**
 * Money, in whole micro-dollars. A cost that nobody can know (an endpoint without prices, a reply without usage) is null,
 * never 0, and so is a sum that such a one is in.
 */
import * as z from "zod";

export const Micros = z.int().nonnegative();

/** Of an endpoint, in micro-dollars for a million tokens. */
export interface TokenPrices {
  readonly input_per_mtok_micros: number;
  readonly output_per_mtok_micros: number;
}

/** What was spent on something. */
export const Cost = z.object({
  judge_micros: Micros.nullable().describe(
    "micro-dollars of the rubric's judges, by the prices of their endpoints when the run was created; null where an endpoint had none, or a reply came without usage",
  ),
});
export type Cost = z.infer<typeof Cost>;

const TOKENS_PRICED = 1_000_000;

/** To the nearest micro-dollar; of each reply by itself, so that sums of sums agree. */
export function tokenCost(
  prices: TokenPrices | undefined,
  { prompt_tokens, completion_tokens }: { prompt_tokens: number; completion_tokens: number },
): number | null {
  if (prices === undefined) return null;
  const input = prompt_tokens * prices.input_per_mtok_micros;
  const output = completion_tokens * prices.output_per_mtok_micros;
  return Math.round((input + output) / TOKENS_PRICED);
}

export function sumOfCosts(costs: Iterable<number | null>): number | null {
  let sum = 0;
  for (const cost of costs) {
    if (cost === null) return null;
    sum += cost;
  }
  return sum;
}
