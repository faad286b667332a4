/**
 * The interface of an organisation's ledger, for runs, projects and the API. Times are epoch milliseconds, money is
 * whole micro-dollars. Every call may arrive twice.
 */
import type { BillingMode, ChargeLines, EntryKind, LedgerEntry } from "../contract/money.ts";
import type { RunKind } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import type { AccountRpc } from "../kernel/messages/account-wire.ts";
import type { GrantedReservation } from "../kernel/run/schema.ts";

/** Counts for hourly usage. Absent: 0. */
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
  /** Calls whose replies were lost: they may have cost the endpoint something. */
  readonly lost_calls?: number;
  readonly pushes?: number;
  readonly byte_days?: number;
  readonly isolate_days?: number;
  /** Micro-dollars of calls whose cost is known, by the prices of their endpoints, and the number of those calls. */
  readonly policy_micros?: number;
  readonly judge_micros?: number;
  readonly priced_calls?: number;
}

/** A numbered sequence of a run: its ends, numbered by `finish_seq`, or the batches that its trainer took. */
export type Stream = "ends" | "pushes";

/** The next item of a run to be charged, even if the charge is 0. */
export interface SettledItem {
  /** From 1, without gaps in its stream. */
  readonly n: number;
  readonly kind: Extract<EntryKind, "rollout" | "rescore" | "push">;
  readonly source_id: string;
  readonly at: number;
  readonly lines: ChargeLines;
  readonly use: UseCounts;
}

/** Identifies the work, for budgets and usage. */
export interface RunFacts {
  readonly scope: Scope;
  readonly run_id: string;
  /** `key_…`, `per_…`: the key or person that started the run. */
  readonly payer: string;
  readonly environment: string;
  readonly model: string;
  readonly kind: RunKind;
  /** Null if nothing is charged: then there are no journal entries, only usage. */
  readonly price_version: string | null;
}

export interface SettleOrder {
  readonly run: RunFacts;
  /**
   * In order of `n`. Items that are already settled are skipped, and nothing is taken after a gap. At most 1,000 items
   * of both streams are taken; the rest must be sent with the next order.
   */
  readonly items: Readonly<Partial<Record<Stream, readonly SettledItem[]>>>;
  /** The total to reserve from now on. Null: unchanged, minus the charges of the items. 0 releases everything. */
  readonly reservation: number | null;
  /**
   * The least useful amount. If less is available, nothing is reserved, and the run is notified once there is enough.
   */
  readonly least?: number;
}

export interface SettleReply {
  /** The last item of each stream that is in the ledger. */
  readonly settled: Readonly<Record<Stream, number>>;
  readonly reservation: GrantedReservation | null;
}

export interface ReservationAsk {
  readonly run: RunFacts;
  readonly micros: number;
}

/** Something that is posted once: a repeat with the same kind, source and period changes nothing. */
export interface Posting {
  readonly orgId: string;
  readonly kind: Exclude<EntryKind, "rollout" | "rescore" | "push">;
  readonly source_id: string;
  readonly period: string;
  readonly project_id: string | null;
  /** The change of the balance. For storage, `lines` are used instead. */
  readonly amount_micros: number;
  readonly lines?: ChargeLines;
  readonly use?: UseCounts;
  readonly price_version?: string | null;
  /** The counter account, such as `paid_in/stripe`. */
  readonly against: string;
  readonly note: string | null;
}

export interface PostReply {
  /** False: it was posted before, and `entry` is that entry (null if it is archived). */
  readonly posted: boolean;
  readonly entry: LedgerEntry | null;
  readonly balance_micros: number;
  /** True: the organisation is being deleted, and nothing more is posted to it. */
  readonly gone?: true;
}

export interface BalanceState {
  readonly billing: BillingMode;
  readonly balance_micros: number;
  readonly reserved_micros: number;
  /** How far the balance of a postpaid organisation may fall below 0; null: no limit. */
  readonly credit_limit_micros: number | null;
  readonly entries: number;
}

export interface EntriesQuery {
  /** Only entries with lower numbers; null: from the newest. */
  readonly before: number | null;
  readonly limit: number;
  readonly kind: EntryKind | null;
  readonly run_id: string | null;
  readonly source_id: string | null;
}

/** Entries, the newest first. */
export interface EntriesPage {
  readonly entries: readonly LedgerEntry[];
  /** The value of `before` for the next page: entries with lower numbers were not read. Null: there are no more. */
  readonly next: number | null;
}

/** A difference that the verification of the ledger found. */
export interface LedgerDifference {
  readonly what: string;
  readonly entry: number | null;
  readonly expected: number | string | null;
  readonly actual: number | string | null;
}

export interface LedgerFindings {
  readonly entries: number;
  readonly balance_micros: number;
  /** The balance recomputed from the entries. */
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
  /** The change of each account by the month's entries. */
  readonly accounts: Readonly<Record<string, number>>;
  /** Null while the month is open. */
  readonly closed_at: number | null;
}

export interface BudgetState {
  readonly budget_id: string;
  readonly spent_micros: number;
  readonly reserved_micros: number;
  /** The thresholds (50, 80, 100 per cent) that were crossed this month. */
  readonly thresholds: readonly number[];
}

/** The ledger part of an organisation's object. */
export interface LedgerRpc extends AccountRpc {
  /** Takes a run's charged items and reserves money for its next rollouts. At most once a second per run. */
  settle(order: SettleOrder): Promise<SettleReply>;
  /** The first reservation, before a run starts: all or nothing. It expires unless the run settles. */
  reserve(ask: ReservationAsk): Promise<GrantedReservation>;
  post(posting: Posting): Promise<PostReply>;
  balance(orgId: string): Promise<BalanceState>;
  /** At most `limit` entries. At most 300 archived files are read: a page may be empty without being the last. */
  entries(query: EntriesQuery): Promise<EntriesPage>;
  /** The entries of these sources of a run, for an audit. `before`: see `entries`. */
  entriesOf(runId: string, sourceIds: readonly string[], before?: number | null): Promise<EntriesPage>;
  /** A month, also the open one; null if it has no entries. `month`: such as `2026-11`. */
  month(orgId: string, month: string): Promise<MonthState | null>;
  /** Closed months before this one (null: all), the latest first. */
  closedMonths(orgId: string, before: string | null, limit: number): Promise<readonly MonthState[]>;
  /** The state of this month's (UTC) budgets. */
  budgets(orgId: string): Promise<readonly BudgetState[]>;
  /** Recomputes everything. */
  verify(orgId: string): Promise<LedgerFindings>;
}

export function ledgerObject(env: Env, orgId: string): LedgerRpc {
  const stub: unknown = env.ACCOUNT.getByName(`org/${orgId}`);
  return stub as LedgerRpc;
}
