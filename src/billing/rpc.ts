/**
 * What runs, projects and the API ask of the books of an organisation, and what they are told. Times are epoch
 * milliseconds, money is whole micro-dollars. Every call may come twice.
 */
import type { BillingMode, ChargeLines, EntryKind, LedgerEntry } from "../contract/money.ts";
import type { RunKind } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import type { AccountRpc } from "../kernel/messages/account-wire.ts";
import type { HoldGrant } from "../kernel/run/schema.ts";

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

export interface SettleReply {
  /** The last item of each stream that is in the books. */
  readonly settled: Readonly<Record<Stream, number>>;
  readonly hold: HoldGrant | null;
}

export interface HoldAsk {
  readonly run: RunFacts;
  readonly micros: number;
}

/** Something that happens once: the same kind, source and period again change nothing. */
export interface Posting {
  readonly orgId: string;
  readonly kind: Exclude<EntryKind, "rollout" | "rescore" | "push">;
  readonly source_id: string;
  readonly period: string;
  readonly project_id: string | null;
  /** What it does to the balance, but for storage: there `lines` say it. */
  readonly amount_micros: number;
  readonly lines?: ChargeLines;
  readonly use?: UseCounts;
  readonly price_version?: string | null;
  /** The account on the other side, such as `paid_in/stripe`. */
  readonly against: string;
  readonly note: string | null;
}

export interface PostReply {
  /** False: it was posted before, and `entry` is that one (null once it is archived). */
  readonly posted: boolean;
  readonly entry: LedgerEntry | null;
  readonly balance_micros: number;
  /** True: the organisation is being deleted, and nothing is posted to it any more. */
  readonly gone?: true;
}

export interface BalanceState {
  readonly billing: BillingMode;
  readonly balance_micros: number;
  readonly reserved_micros: number;
  /** How far the balance of a postpaid organisation may fall below 0; null: any. */
  readonly credit_limit_micros: number | null;
  readonly entries: number;
}

export interface EntriesQuery {
  /** Entries with lower numbers; null: from the newest on. */
  readonly before: number | null;
  readonly limit: number;
  readonly kind: EntryKind | null;
  readonly run_id: string | null;
  readonly source_id: string | null;
}

/** Entries, the newest first. */
export interface EntriesPage {
  readonly entries: readonly LedgerEntry[];
  /** Entries with lower numbers were not looked at: they are asked for by `before`; null: there are none. */
  readonly next: number | null;
}

/** One thing that does not hold in the books. */
export interface LedgerDifference {
  readonly what: string;
  readonly entry: number | null;
  readonly expected: number | string | null;
  readonly actual: number | string | null;
}

export interface LedgerFindings {
  readonly entries: number;
  readonly balance_micros: number;
  /** What the balances come to when they are added up again from the entries. */
  readonly recomputed_micros: number;
  readonly differences: readonly LedgerDifference[];
}

/** A month (UTC, by the time of posting). */
export interface MonthState {
  /** `2026-11` */
  readonly month: string;
  readonly first_entry: number;
  readonly last_entry: number;
  readonly entries: number;
  readonly opening_micros: number;
  readonly closing_micros: number;
  /** What its entries did to each account. */
  readonly accounts: Readonly<Record<string, number>>;
  /** Null while it is open. */
  readonly closed_at: number | null;
}

export interface BudgetState {
  readonly budget_id: string;
  readonly spent_micros: number;
  readonly reserved_micros: number;
  /** Of 50, 80 and 100 percent those that were crossed this month. */
  readonly thresholds: readonly number[];
}

/** Money's part of the object of an organisation. */
export interface BooksRpc extends AccountRpc {
  /** Takes what a run is charged into the books, and reserves what it may be charged next. At most once a second a run. */
  settle(order: SettleOrder): Promise<SettleReply>;
  /**
   * Before a run begins: its first reservation, all of it or nothing, which then is kept nowhere. It ends by itself unless
   * the run settles.
   */
  hold(ask: HoldAsk): Promise<HoldGrant>;
  post(posting: Posting): Promise<PostReply>;
  balance(orgId: string): Promise<BalanceState>;
  /** At most `limit`. Archived ones are read from 300 files in a call: a page may be empty and not the last. */
  entries(query: EntriesQuery): Promise<EntriesPage>;
  /** What the books hold of these sources of a run: their entries, for an audit. `before`: see `entries`. */
  entriesOf(runId: string, sourceIds: readonly string[], before?: number | null): Promise<EntriesPage>;
  /** What a month did, the open one too; null where it has no entry. `month`: `2026-11`. */
  month(orgId: string, month: string): Promise<MonthState | null>;
  /** Closed months before this one (null: all), the latest first. */
  closedMonths(orgId: string, before: string | null, limit: number): Promise<readonly MonthState[]>;
  /** This month's (UTC) budgets. */
  budgets(orgId: string): Promise<readonly BudgetState[]>;
  /** Makes everything again. */
  verify(orgId: string): Promise<LedgerFindings>;
}

export function booksObject(env: Env, orgId: string): BooksRpc {
  const stub: unknown = env.ACCOUNT.getByName(`org/${orgId}`);
  return stub as BooksRpc;
}
