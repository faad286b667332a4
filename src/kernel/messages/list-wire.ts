/**
 * What a run's object answers of its rollouts as lists: a slice at a time, each of bounded work, which whoever asks puts
 * together. A cursor says where the walk goes on; it is opaque to clients.
 */
import type { FilterTerm, Measure, Sorting } from "../../contract/filter.ts";
import type { GroupSort, GroupSummary, HistogramField, RolloutSummary } from "../../contract/rollout-list.ts";

/**
 * A place in the order of a walk: behind the row `seq` whose number is `value`. Those without the number come last, in
 * the order of their dispatch: there `value` is null, and a `seq` of 0 is before all of them.
 */
export interface ListCursor {
  readonly value: number | null;
  readonly seq: number;
}

/** Part of every question that a filter is asked with. */
export interface Sliced {
  /** Rows that one slice looks at, the same for all slices of a list. Without it the run's object says how many. */
  readonly rows?: number;
}

export interface RolloutSliceQuery extends Sliced {
  readonly terms: readonly FilterTerm[];
  readonly sort: Sorting;
  /** Null: from the start. */
  readonly after: ListCursor | null;
  readonly limit: number;
}

export type ListedRollout = Omit<RolloutSummary, "object" | "run_id"> & { readonly at: ListCursor };

export interface RolloutSlice {
  readonly rows: readonly ListedRollout[];
  /** Where the walk goes on, whether or not it found any; null: there is nothing more. */
  readonly next: { readonly after: ListCursor | null } | null;
}

/** Groups behind `from`, in order, or before it where the largest come first. */
export interface GroupSliceQuery extends Sliced {
  readonly terms: readonly FilterTerm[];
  readonly sort: { readonly by: GroupSort; readonly descending: boolean };
  /** Only those behind this place in the order: of value, then of group. */
  readonly after: { readonly value: number | null; readonly group: number } | null;
  /** The number of the slice: each has the same number of groups. */
  readonly slice: number;
  readonly limit: number;
}

export type ListedGroup = Omit<GroupSummary, "object" | "run_id"> & { readonly value: number | null };

export interface GroupSlice {
  /** In the order that was asked for. */
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

/** Rollouts up to this one end, of those dispatched as `slice` says. */
export interface SpreadQuery extends Sliced {
  readonly terms: readonly FilterTerm[];
  readonly of: Measure<HistogramField>;
  /** Of the end that the first slice named; null in that one. */
  readonly upto: number | null;
  readonly slice: number;
}

export interface Spread {
  readonly min: number | null;
  readonly max: number | null;
  /** All values so far are whole numbers. */
  readonly whole: boolean;
  readonly upto: number;
  readonly slices: number;
  /** Steps that were shipped: the last of them; 0 where none was. */
  readonly last_step: number;
}

export interface BinsQuery extends SpreadQuery {
  readonly upto: number;
  /** Where the second bin begins, the third, and so on: ascending. */
  readonly edges: readonly number[];
  /** Also by step: of those from the first one on; null: not. */
  readonly steps: { readonly after: number; readonly most: number } | null;
}

export interface BinCounts {
  /** One more than there are edges. */
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

/** Texts that a search looks in: of each group the beginning of its first prompt, as far as they are known. */
export interface SearchTexts {
  /** Of rollouts behind the end `after`, up to the end `upto`. */
  readonly after: number;
  readonly upto: number;
  readonly texts: readonly { readonly group: number; readonly text: string }[];
}

export interface SearchState {
  readonly upto: number;
  /** Rollouts that have ended. */
  readonly of: number;
  /** There is room for more texts. */
  readonly open: boolean;
}
