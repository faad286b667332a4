/**
 * Computes what a rollout is charged when it ends, and stores it on its row: from the prices that its run pinned and
 * the numbers of the same row. settling.ts posts this charge, and an audit recomputes it from trajectories.
 */
import type { ChargeLines } from "../contract/money.ts";
import type { PinnedPrices } from "../contract/run-spec.ts";
import { sumOfLines } from "../core/costs/run-costs.ts";
import type { Ending, RolloutEntry } from "../kernel/messages/run-records.ts";
import type { RunSpec } from "../kernel/messages/wire.ts";
import { linesOf } from "../kernel/run/charged.ts";
import type { JudgedTokens } from "../kernel/run/charges.ts";
import type { SettledRow } from "../kernel/run/ended-rows.ts";
import { policyMicros } from "../kernel/run/report-sums.ts";
import type { RunHead } from "../kernel/run/schema.ts";
import type { TrainBatch } from "../kernel/run/training-state.ts";
import { chargeOf, pushCharge, type RolloutUse } from "./charge.ts";
import { firstEstimate, nextEstimate } from "./estimate.ts";
import type { SettledItem, UseCounts } from "./rpc.ts";

/** What a charge depends on besides the usage. */
export function endOf(
  { rescore, limits }: RunSpec,
  { error, digest, carries }: RolloutEntry,
  { outcome, reason }: Ending,
): Pick<RolloutUse, "outcome" | "reason" | "error" | "left" | "call_timeout_s" | "carried"> {
  const failed = error === null ? null : (JSON.parse(error) as { readonly error: string });
  const carried = rescore !== undefined || carries !== null;
  const { call_timeout_s } = limits;
  return { outcome, reason, error: failed?.error ?? null, left: digest !== null, call_timeout_s, carried };
}

/** The charge of an ending rollout, from the numbers of its row and the tokens of its judges. */
export function chargeOfEnd(
  prices: PinnedPrices,
  spec: RunSpec,
  row: RolloutEntry,
  { judged, ...ending }: Ending & { readonly judged: readonly JudgedTokens[] },
): ChargeLines {
  const { turns, prompt_tokens, cached_tokens, completion_tokens } = row;
  const use = { turns, policy: { prompt_tokens, cached_tokens, completion_tokens }, judged };
  return chargeOf(prices, { ...endOf(spec, row, ending), ...use });
}

export function pushMicros(prices: PinnedPrices): number {
  return sumOfLines(pushCharge(prices));
}

/** The expected charge of each further rollout, in micro-dollars; 0 if the run is not charged. */
export function estimateOf(
  spec: RunSpec,
  { books: accounting, finished }: Pick<RunHead, "books" | "finished">,
): number {
  const prices = spec.money?.prices ?? null;
  if (prices === null) return 0;
  const first = firstEstimate(prices, {
    carried: spec.rescore !== undefined,
    judges: Object.keys(spec.judges ?? {}),
    max_tokens: spec.sampling.max_tokens ?? undefined,
  });
  return nextEstimate(first, { charged: accounting.charged, ended: finished });
}

/** An ended rollout as an item for the ledger. A carried rollout ended long before, so its time is `now`. */
export function settledEnd(spec: RunSpec, row: SettledRow, now: number): SettledItem {
  const carried = spec.rescore !== undefined || row.carries !== null;
  return {
    n: row.finish_seq ?? 0,
    kind: carried ? "rescore" : "rollout",
    source_id: row.id,
    at: carried ? now : (row.ended_at ?? now),
    lines: linesOf(row),
    use: usedBy(spec, row, carried),
  };
}

function usedBy({ money }: RunSpec, row: SettledRow, carried: boolean): UseCounts {
  const policy = policyMicros(money?.policy ?? undefined, row);
  const judges = row.judge_calls === 0 ? 0 : row.judge_micros;
  return withoutNothing({
    rollouts: carried ? 0 : 1,
    scored: row.outcome === "scored" ? 1 : 0,
    turns: row.turns,
    calls: row.calls,
    input_tokens: row.prompt_tokens,
    cached_input_tokens: row.cached_tokens,
    output_tokens: row.completion_tokens,
    judge_calls: row.judge_calls,
    judge_input_tokens: row.judge_prompt_tokens,
    judge_output_tokens: row.judge_completion_tokens,
    lost_calls: row.lost_calls,
    policy_micros: policy ?? 0,
    judge_micros: judges ?? 0,
    priced_calls: (policy === null ? 0 : row.calls) + (judges === null ? 0 : row.judge_calls),
  });
}

function withoutNothing(counts: UseCounts): UseCounts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** A batch that the trainer took, as an item for the ledger. */
export function settledPush({ money }: RunSpec, batch: TrainBatch, now: number): SettledItem {
  const prices = money?.prices ?? null;
  return {
    n: batch.push_seq ?? 0,
    kind: "push",
    source_id: batch.batch_id,
    at: batch.pushed_at ?? now,
    lines: prices === null ? {} : pushCharge(prices),
    use: { pushes: 1 },
  };
}
