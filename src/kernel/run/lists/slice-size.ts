/**
 * How many rows one call looks at. What a row takes depends on the filter and on what the row holds: twenty texts that are
 * searched in long errors take a thousand times as long as the comparison of a number.
 */
import type { FilterTerm, Sorting } from "../../../contract/filter.ts";
import type { ListAnswer } from "../../messages/rpc.ts";
import type { Listed } from "./listed.ts";

/** Of a filter without texts and scores. */
export const SCANNED = 20_000;
/** So many at least, or a long list would take more calls than one request may make. */
const FEWEST = 250;
/** Steps of the process's turns (kit/fair-turns.ts) that a slice takes: about 25 ms. */
const SLICE_STEPS = 500_000;
const STEPS_PER_ROW = 25;
const STEPS_PER_VALUE = 2;
const STEPS_PER_TEXT = 15;
const CHARACTERS_PER_STEP = 20;
/** The beginning of a first prompt. */
const PROMPT_CHARACTERS = 500;
const STEPS_PER_SCORE = 10;
/** Scores are read as JSON for each term. */
const SCORE_CHARACTERS_PER_STEP = 8;
const SAMPLED = 200;

/** What rows hold on average, in characters: texts that a filter searches, and scores as JSON. */
export type RowSizes = ListAnswer<"rowSizes">;

export interface SliceSize {
  readonly rows: number;
  /** To look at all of them. */
  readonly steps: number;
}

/** `by`: a number that is read of each row beside the terms. */
export function sliceSizeOf(terms: readonly FilterTerm[], by: Sorting["by"]["kind"], sizes: RowSizes): SliceSize {
  const score = STEPS_PER_SCORE + sizes.scores / SCORE_CHARACTERS_PER_STEP;
  const text = STEPS_PER_TEXT + (sizes.texts + PROMPT_CHARACTERS) / CHARACTERS_PER_STEP;
  const each = terms.map((term) => {
    if (term.kind === "text") return text;
    if (term.kind === "score") return score;
    return STEPS_PER_VALUE * (term.kind === "flag" ? 1 : term.values.length);
  });
  const perRow = each.reduce((sum, steps) => sum + steps, STEPS_PER_ROW + (by === "score" ? score : 0));
  const rows = Math.max(FEWEST, Math.min(SCANNED, Math.floor(SLICE_STEPS / perRow)));
  return { rows, steps: Math.max(SLICE_STEPS, Math.ceil(rows * perRow)) };
}

/** Of rows all over the run, equally far apart. */
export function rowSizes({ store, sql }: Listed): RowSizes {
  const last = store.lastSeq();
  const count = Math.min(SAMPLED, last);
  const seqs = Array.from({ length: count }, (_, at) => Math.floor((at * last) / count) + 1);
  const of = (column: string) => `ifnull(length(${column}), 0)`;
  return sql
    .exec<{ texts: number; scores: number }>(
      `select ifnull(avg(${["error", "scoring_errors", "task_key", "task_text"].map(of).join(" + ")}), 0) as texts,
        ifnull(avg(${of("scores")}), 0) as scores
      from rollouts where seq in (select value from json_each(?))`,
      JSON.stringify(seqs),
    )
    .one();
}
