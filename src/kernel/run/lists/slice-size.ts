/**
 * How many rows one call reads. The cost of a row depends on the filter and on the row: searching twenty texts in long
 * errors takes a thousand times as long as comparing a number.
 */
import type { Sorting } from "../../../contract/filter.ts";
import type { RowTerm } from "../../messages/list-wire.ts";
import type { ListAnswer } from "../../messages/rpc.ts";
import type { Listed } from "./listed.ts";

/** Rows for a filter without texts and scores. */
export const SCANNED = 20_000;
/** At least this many, or a long list would need more calls than one request may make. */
const FEWEST = 250;
/** Steps in the process's scheduling turns (kit/fair-scheduler.ts) for one slice: about 25 ms. */
const SLICE_STEPS = 500_000;
const STEPS_PER_ROW = 25;
const STEPS_PER_VALUE = 2;
const STEPS_PER_TEXT = 15;
const CHARACTERS_PER_STEP = 20;
/** Only the beginning of the first prompt is searched. */
const PROMPT_CHARACTERS = 500;
const STEPS_PER_SCORE = 10;
/** Scores are parsed as JSON for each term. */
const SCORE_CHARACTERS_PER_STEP = 8;
/** The places of a term are parsed and sorted once for each slice. */
const STEPS_PER_PLACE = 10;
const SAMPLED = 200;

/** Average characters per row: texts that a filter searches, and scores as JSON. */
export type RowSizes = ListAnswer<"rowSizes">;

export interface SliceSize {
  readonly rows: number;
  /** Steps to read all of them. */
  readonly steps: number;
}

/** `by`: the number to sort by, which is read from each row in addition to the terms. */
export function sliceSizeOf(terms: readonly RowTerm[], by: Sorting["by"]["kind"], sizes: RowSizes): SliceSize {
  const score = STEPS_PER_SCORE + sizes.scores / SCORE_CHARACTERS_PER_STEP;
  const text = STEPS_PER_TEXT + (sizes.texts + PROMPT_CHARACTERS) / CHARACTERS_PER_STEP;
  const each = terms.map((term) => {
    if (term.kind === "text") return text;
    if (term.kind === "score") return score;
    if (term.kind === "flag") return STEPS_PER_VALUE;
    return STEPS_PER_VALUE * (term.kind === "among" ? 3 : term.values.length);
  });
  const perRow = each.reduce((sum, steps) => sum + steps, STEPS_PER_ROW + (by === "score" ? score : 0));
  const places = terms.reduce((sum, term) => sum + (term.kind === "among" ? term.places.length : 0), 0);
  const once = places * STEPS_PER_PLACE;
  const rows = Math.max(FEWEST, Math.min(SCANNED, Math.floor((SLICE_STEPS - once) / perRow)));
  return { rows, steps: Math.max(SLICE_STEPS, once + Math.ceil(rows * perRow)) };
}

/** Sampled from rows at equal distances over the whole run. */
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
