/**
 * How a run's object answers queries for lists of its rollouts: one slice at a time, each of bounded work; the caller
 * joins them. A cursor says where the walk continues; it is opaque to clients.
 */
import type { FilterTerm, Measure, Sorting } from "../../contract/filter.ts";
import type { GroupSort, GroupSummary, HistogramField, RolloutSummary } from "../../contract/rollout-list.ts";

/**
 * A place in the order of a walk: after the row `seq`, whose sort value is `value`. Rows without the value come last,
 * in the order of their dispatch; for them `value` is null, and a `seq` of 0 is before all of them.
 */
export interface ListCursor {
  readonly value: number | null;
  readonly seq: number;
}

/** A rollout by its group, slot and attempt. */
export type Place = readonly [group: number, slot: number, attempt: number];

/**
 * A term of a filter, as the run's object checks it. The object has no reviews, so `readTerms` (service/read-terms.ts)
 * replaces the terms about them by the rollouts that they select: at most `LIMITS.reviewsPerRun`.
 */
export type RowTerm =
  | Exclude<FilterTerm, { readonly kind: "review" }>
  | { readonly kind: "among"; readonly negated: boolean; readonly places: readonly Place[] };

/** Part of every query with a filter. */
export interface Sliced {
  /** Rows that one slice examines, the same for all slices of a list. If absent, the run's object decides. */
  readonly rows?: number;
}

export interface RolloutSliceQuery extends Sliced {
  readonly terms: readonly RowTerm[];
  readonly sort: Sorting;
  /** Null: from the start. */
  readonly after: ListCursor | null;
  readonly limit: number;
}

export type ListedRollout = Omit<RolloutSummary, "object" | "run_id"> & { readonly at: ListCursor };

export interface RolloutSlice {
  readonly rows: readonly ListedRollout[];
  /** Where the walk continues, whether or not this slice found any rows; null: there is nothing more. */
  readonly next: { readonly after: ListCursor | null } | null;
}

/** Groups after `from` in ascending order, or before it in descending order. */
export interface GroupSliceQuery extends Sliced {
  readonly terms: readonly RowTerm[];
  readonly sort: { readonly by: GroupSort; readonly descending: boolean };
  /** Only groups after this place in the order: by value, then by group. */
  readonly after: { readonly value: number | null; readonly group: number } | null;
  /** The number of the slice: all slices have the same number of groups. */
  readonly slice: number;
  readonly limit: number;
}

export type ListedGroup = Omit<GroupSummary, "object" | "run_id"> & { readonly value: number | null };

export interface GroupSlice {
  /** In the order of `sort`. */
  readonly rows: readonly ListedGroup[];
  /** How many slices there are in all. */
  readonly slices: number;
}

export interface GroupRecord {
  readonly group: Omit<GroupSummary, "object" | "run_id">;
  readonly members: readonly ListedRollout[];
  readonly members_left_out: number;
  readonly batch: {
    readonly id: string;
    readonly step: number;
    readonly state: string;
    readonly groups: number;
    readonly rollouts: number;
  } | null;
}

/** Rollouts up to the end `upto`, of those that were dispatched in the given slice. */
export interface SpreadQuery extends Sliced {
  readonly terms: readonly RowTerm[];
  readonly of: Measure<HistogramField>;
  /** The end that the first slice returned; null in the query for the first slice. */
  readonly upto: number | null;
  readonly slice: number;
}

export interface Spread {
  readonly min: number | null;
  readonly max: number | null;
  /** True if all values so far are whole numbers. */
  readonly whole: boolean;
  readonly upto: number;
  readonly slices: number;
  /** The last step that was shipped; 0 if none was. */
  readonly last_step: number;
}

export interface BinsQuery extends SpreadQuery {
  readonly upto: number;
  /** Where the second bin begins, the third, and so on, in ascending order. */
  readonly edges: readonly number[];
  /** Counts by step too, from the first step after `after`; null: no counts by step. */
  readonly steps: { readonly after: number; readonly most: number } | null;
}

export interface BinCounts {
  /** One more than the number of edges. */
  readonly bins: readonly number[];
  readonly null: number;
  readonly failed: number;
  readonly in_flight: number;
  readonly by_step: readonly {
    readonly step: number;
    readonly bins: readonly number[];
    readonly null: number;
    readonly failed: number;
  }[];
}

/** Texts that a search examines: the beginning of the first prompt of each group, as far as they are stored. */
export interface SearchTexts {
  /** From rollouts after the end `after`, up to the end `upto`. */
  readonly after: number;
  readonly upto: number;
  readonly texts: readonly { readonly group: number; readonly text: string }[];
}

export interface SearchState {
  readonly upto: number;
  /** Rollouts that have ended. */
  readonly of: number;
  /** True if more texts can be stored. */
  readonly open: boolean;
}
