/**
 * Computes what the platform charges, line by line: for a rollout, for a pushed batch, for a day of storage. Pure: the
 * ledger posts this result, and an audit recomputes it from stored data.
 */
import { type CancelReason, ENDPOINT_MOVED, type FailureClass } from "../contract/errors.ts";
import { CALL_TIMEOUT_S } from "../contract/eval-request.ts";
import type { ChargeLine, ChargeLines, Fees, OfferedTokens, PriceList } from "../contract/money.ts";
import type { Outcome } from "../contract/run.ts";
import type { PinnedPrices } from "../contract/run-spec.ts";
import type { TokensUsed } from "../core/costs/run-costs.ts";

/** How a rollout ended, and what it used. */
export interface RolloutUse {
  readonly outcome: Outcome;
  readonly reason: string | null;
  /** The name of the error that ended it, such as StageTimeoutError; null if there was none. */
  readonly error: string | null;
  /** It left a trajectory. Without one it never started, or the platform lost the trajectory. */
  readonly left: boolean;
  /** The run's timeout for one model call, in seconds. */
  readonly call_timeout_s: number;
  /** It took over the trajectory of another rollout and was only scored. */
  readonly carried: boolean;
  readonly turns: number;
  readonly policy: TokensUsed;
  /** The tokens of each judgement, with the judge's name. */
  readonly judged: readonly (TokensUsed & { readonly judge: string })[];
}

/** Failures that the customer did not cause. A rollout that ended with one is not charged. */
const FREE_FAILURES: ReadonlySet<string> = new Set<FailureClass>([
  "provider",
  "environment_changed",
  "tool_outcome_unknown",
  "platform",
]);
/** The platform cancelled what it had started. */
const FREE_CANCELS: ReadonlySet<string> = new Set<CancelReason>(["stale", "overload", "version_reset"]);

/** A hook did not finish in time. `timeout` with any other error means that a model did not answer. */
const STAGE_TIMEOUT = "StageTimeoutError";

export function isFree({
  outcome,
  reason,
  error,
  left,
  call_timeout_s,
}: Pick<RolloutUse, "outcome" | "reason" | "error" | "left" | "call_timeout_s">): boolean {
  if (!left) return true;
  // The organisation changed the endpoint's address, so it pays for the tokens that were used.
  if (outcome === "failed" && error === ENDPOINT_MOVED) return false;
  if (outcome === "failed" && reason === "timeout") {
    // A run with a shorter timeout than the platform's default pays: the model might have answered in time.
    return error !== STAGE_TIMEOUT && call_timeout_s >= CALL_TIMEOUT_S;
  }
  if (outcome === "failed") return reason === null || FREE_FAILURES.has(reason);
  return outcome === "cancelled" && (reason === null || FREE_CANCELS.has(reason));
}

/** Lines of 0 are left out. An unscored rollout is charged everything except scoring. */
export function chargeOf({ fees, policy, judges }: PinnedPrices, use: RolloutUse): ChargeLines {
  if (isFree(use)) return {};
  const { turns, carried, judged } = use;
  const judge_tokens = judged.reduce((sum, one) => sum + tokensMicros(judges[one.judge] ?? null, one), 0);
  const scoring = use.outcome === "scored" ? fees.scoring_micros : 0;
  if (carried) return linesOf({ judge_tokens, scoring });
  const { prompt_tokens, cached_tokens = 0, completion_tokens } = use.policy;
  const cached = Math.min(cached_tokens, prompt_tokens);
  return linesOf({
    rollout: fees.rollout_micros,
    turns: share(turns, fees.thousand_turns_micros, 1000),
    input_tokens: perMillion(prompt_tokens - cached, policy?.input_per_mtok_micros),
    cached_input_tokens: perMillion(cached, policy?.cached_input_per_mtok_micros),
    output_tokens: perMillion(completion_tokens, policy?.output_per_mtok_micros),
    judge_tokens,
    scoring,
  });
}

export function pushCharge({ fees }: PinnedPrices): ChargeLines {
  return linesOf({ push: fees.push_micros });
}

const BYTES_PER_GB = 1_000_000_000;

/** `bytes`: the bytes stored on one day. */
export function storageCharge({ gb_day_micros }: Fees, bytes: number): ChargeLines {
  return linesOf({ storage: share(bytes, gb_day_micros, BYTES_PER_GB) });
}

/** The list in force at a time (epoch milliseconds): of the lists that have started, the one that started last. */
export function listAt<List extends Pick<PriceList, "effective_from">>(
  lists: readonly List[],
  now: number,
): List | null {
  const begun = lists.filter(({ effective_from }) => effective_from * 1000 <= now);
  return begun.reduce<List | null>((last, one) => {
    return last === null || one.effective_from >= last.effective_from ? one : last;
  }, null);
}

/** Rounds to the nearest micro-dollar, halves up. With BigInt: the product may be too large for a double. */
export function share(count: number, micros: number, per: number): number {
  const product = BigInt(count) * BigInt(micros);
  const divisor = BigInt(per);
  return Number((product * 2n + divisor) / (divisor * 2n));
}

/** Micro-dollars; 0 if the platform does not sell the model. */
export function tokensMicros(
  prices: OfferedTokens | null,
  { prompt_tokens, cached_tokens = 0, completion_tokens }: TokensUsed,
) {
  const cached = Math.min(cached_tokens, prompt_tokens);
  return (
    perMillion(prompt_tokens - cached, prices?.input_per_mtok_micros) +
    perMillion(cached, prices?.cached_input_per_mtok_micros) +
    perMillion(completion_tokens, prices?.output_per_mtok_micros)
  );
}

function perMillion(tokens: number, micros = 0): number {
  return share(tokens, micros, 1_000_000);
}

function linesOf(lines: Readonly<Partial<Record<ChargeLine, number>>>): ChargeLines {
  return Object.fromEntries(Object.entries(lines).filter(([, micros]) => micros !== 0));
}
