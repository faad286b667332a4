/** Estimates what a rollout will be charged before any rollout of its run has ended. This amount is reserved. Pure. */
import { CALL_TIMEOUT_S } from "../contract/eval-request.ts";
import type { PinnedPrices } from "../contract/run-spec.ts";
import { sumOfLines, type TokensUsed } from "../core/costs/run-costs.ts";
import { chargeOf } from "./charge.ts";

/** Assumed usage of a rollout about which nothing is known yet. */
const TURNS = 10;
const PROMPT_TOKENS_A_TURN = 2000;
const COMPLETION_TOKENS_A_TURN = 500;
/** Assumed usage of one call to a judge. */
const JUDGED: TokensUsed = { prompt_tokens: 2000, completion_tokens: 500 };
/** The factor on the average charge of ended rollouts: the next rollout may cost more. */
const MARGIN = 1.5;

interface Expected {
  /** It takes over a trajectory and is only scored. */
  readonly carried: boolean;
  readonly judges: readonly string[];
  /** `max_tokens` of its sampling; absent if not set. */
  readonly max_tokens?: number | undefined;
}

/** The expected charge of each of the first rollouts, in micro-dollars. */
export function firstEstimate(prices: PinnedPrices, { carried, judges, max_tokens }: Expected): number {
  const completion = Math.min(COMPLETION_TOKENS_A_TURN, max_tokens ?? COMPLETION_TOKENS_A_TURN);
  const lines = chargeOf(prices, {
    ...{ outcome: "scored", reason: null, error: null, left: true, carried, turns: TURNS },
    call_timeout_s: CALL_TIMEOUT_S,
    policy: { prompt_tokens: TURNS * PROMPT_TOKENS_A_TURN, completion_tokens: TURNS * completion },
    judged: judges.map((judge) => ({ judge, ...JUDGED })),
  });
  return sumOfLines(lines);
}

/**
 * The expected charge of each further rollout, in micro-dollars. `charged`: the total of the rollouts that have ended.
 */
export function nextEstimate(first: number, { charged, ended }: { charged: number; ended: number }): number {
  return ended === 0 || charged === 0 ? first : Math.ceil((charged / ended) * MARGIN);
}
