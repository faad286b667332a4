/** What a rollout is expected to be charged, before any of its run has ended: what is reserved for it. Pure. */
import { CALL_TIMEOUT_S } from "../contract/eval-request.ts";
import type { PinnedPrices } from "../contract/run-spec.ts";
import { sumOfLines, type TokensUsed } from "../core/costs/run-costs.ts";
import { chargeOf } from "./charge.ts";

/** Of a rollout about which nothing is known yet. */
const TURNS = 10;
const PROMPT_TOKENS_A_TURN = 2000;
const COMPLETION_TOKENS_A_TURN = 500;
/** A question to a judge, and its reply. */
const JUDGED: TokensUsed = { prompt_tokens: 2000, completion_tokens: 500 };
/** Of what ended rollouts of the run were charged on average: the next one may well take more. */
const MARGIN = 1.5;

interface Expected {
  /** It takes over a trajectory, and is only scored. */
  readonly carried: boolean;
  readonly judges: readonly string[];
  /** `max_tokens` of its sampling; absent where it has none. */
  readonly max_tokens?: number | undefined;
}

/** Micro-dollars of the first rollouts. */
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

/** Micro-dollars of each of the next. `charged`: of the rollouts that have ended, in all. */
export function nextEstimate(first: number, { charged, ended }: { charged: number; ended: number }): number {
  return ended === 0 || charged === 0 ? first : Math.ceil((charged / ended) * MARGIN);
}
