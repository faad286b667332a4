/**
 * What a run tells the books of its organisation, and what it may count on. Times are epoch milliseconds, money is whole
 * micro-dollars. Every call may come twice.
 */
import type { ChargeLines, EntryKind } from "../../contract/money.ts";
import type { RunKind } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";

/** What something took, for usage by the hour. Absent: 0. */
export interface UseCounts {
  readonly rollouts?: number;
  readonly scored?: number;
  readonly turns?: number;
  readonly calls?: number;
  readonly input_tokens?: number;
  readonly cached_input_tokens?: number;
  readonly output_tokens?: number;
  readonly judge_calls?: number;
  readonly judge_input_tokens?: number;
  readonly judge_output_tokens?: number;
  /** Calls whose replies nobody saw: they may have cost their endpoint something. */
  readonly lost_calls?: number;
  readonly pushes?: number;
  readonly byte_days?: number;
}

/** Of which numbered things of a run it is: its ends, numbered by `finish_seq`, or the steps its trainer took. */
export type Stream = "ends" | "pushes";

/** The next thing of a run that is to be charged, also where that is nothing. */
export interface SettledItem {
  /** From 1, without gaps in its stream. */
  readonly n: number;
  readonly kind: Extract<EntryKind, "rollout" | "rescore" | "push">;
  readonly source_id: string;
  readonly at: number;
  readonly lines: ChargeLines;
  readonly use: UseCounts;
}

/** Whose work it is, for budgets and for usage. */
export interface RunFacts {
  readonly scope: Scope;
  readonly run_id: string;
  /** `key_…`, `per_…`: who began it. */
  readonly payer: string;
  readonly environment: string;
  readonly model: string;
  readonly kind: RunKind;
  /** Null where nothing is charged: then there are no entries, only usage. */
  readonly price_version: string | null;
}

export interface SettleOrder {
  readonly run: RunFacts;
  /**
   * In order of `n`. Those that were settled before are passed over; after a gap nothing is taken. Beyond 1,000 of both
   * streams the rest is left for the next order.
   */
  readonly items: Readonly<Partial<Record<Stream, readonly SettledItem[]>>>;
  /**
   * What it wants to have reserved from now on, in all; null: as it was, less what the items are charged. 0 gives
   * everything back.
   */
  readonly hold: number | null;
  /** Less than this is of no use to it: then nothing is reserved, and it is told once there is as much. */
  readonly least?: number;
}

/** Money that a run may count on, until a time. */
export interface HoldGrant {
  readonly micros: number;
  readonly until: number;
  /** Why it is not more; null where it is what was asked for. */
  readonly short: HoldShort | null;
}

export interface HoldShort {
  readonly by: "balance" | "budget";
  /** The budget that is used up; null for the balance. */
  readonly budget_id: string | null;
  readonly shortfall_micros: number;
  readonly reason: string;
}

export interface SettleReply {
  /** The last item of each stream that is in the books. */
  readonly settled: Readonly<Record<Stream, number>>;
  readonly hold: HoldGrant | null;
}

export interface HoldAsk {
  readonly run: RunFacts;
  readonly micros: number;
}

/** What runs ask of the books. */
export interface ChargesRpc {
  /** Takes what a run is charged into the books, and reserves what it may be charged next. At most once a second a run. */
  settle(order: SettleOrder): Promise<SettleReply>;
  /**
   * Before a run begins: its first reservation, all of it or nothing, which then is kept nowhere. It ends by itself unless
   * the run settles.
   */
  hold(ask: HoldAsk): Promise<HoldGrant>;
}
