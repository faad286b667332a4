/**
 * What the platform charges a rollout, put on its row as it ends: by the prices that its run pinned, from the numbers of
 * the same row. The run's books (settling.ts) post what stands there, and an audit makes it again from trajectories.
 */
import type { ChargeLines } from "../../contract/money.ts";
import { pushCharge, type RolloutUse, sumOfLines } from "../../core/billing/charge.ts";
import { firstEstimate, nextEstimate } from "../../core/billing/estimate.ts";
import type { SettledItem, UseCounts } from "../contract/money-wire.ts";
import type { Ending, RolloutEntry } from "../contract/run-records.ts";
import type { RunSpec } from "../contract/wire.ts";
import type { RunHead } from "./schema.ts";
import type { TrainBatch } from "./training-state.ts";

/** What a charge depends on besides what was used. */
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

/** Nothing where nothing is charged. */
export function linesOf({ charge }: Pick<RolloutEntry, "charge">): ChargeLines {
  return charge === null ? {} : (JSON.parse(charge) as ChargeLines);
}

/** Micro-dollars. */
export function chargedBy({ charge }: { readonly charge?: string | null }): number {
  return sumOfLines(linesOf({ charge: charge ?? null }));
}

/** Micro-dollars that batches which its trainer took are charged. */
export function chargedForPushes({ money }: RunSpec, { books }: Pick<RunHead, "books">): number {
  const prices = money?.prices ?? null;
  return prices === null ? 0 : books.pushed * sumOfLines(pushCharge(prices));
}

/** Micro-dollars that the next rollouts are expected to be charged, each; 0 where nothing is. */
export function estimateOf(spec: RunSpec, { books, finished }: Pick<RunHead, "books" | "finished">): number {
  const prices = spec.money?.prices ?? null;
  if (prices === null) return 0;
  const first = firstEstimate(prices, {
    carried: spec.rescore !== undefined,
    judges: Object.keys(spec.judges ?? {}),
    max_tokens: spec.sampling.max_tokens ?? undefined,
  });
  return nextEstimate(first, { charged: books.charged, ended: finished });
}

/** As much of an ended rollout as the books are told. */
export type SettledRow = Pick<
  RolloutEntry,
  | "id"
  | "carries"
  | "outcome"
  | "turns"
  | "calls"
  | "prompt_tokens"
  | "completion_tokens"
  | "cached_tokens"
  | "judge_calls"
  | "judge_prompt_tokens"
  | "judge_completion_tokens"
  | "lost_calls"
  | "charge"
  | "ended_at"
  | "finish_seq"
>;

/** An ended rollout, as the books take it. `now` stands for the end of one that took over what had ended long before. */
export function settledEnd(spec: RunSpec, row: SettledRow, now: number): SettledItem {
  const carried = spec.rescore !== undefined || row.carries !== null;
  return {
    n: row.finish_seq ?? 0,
    kind: carried ? "rescore" : "rollout",
    source_id: row.id,
    at: carried ? now : (row.ended_at ?? now),
    lines: linesOf(row),
    use: usedBy(row, carried),
  };
}

function usedBy(row: SettledRow, carried: boolean): UseCounts {
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
  });
}

function withoutNothing(counts: UseCounts): UseCounts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** A batch that its trainer took, as the books take it. */
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
