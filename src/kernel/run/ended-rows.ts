/** Ended rollouts in the order of their ends, as much of each as its reader needs: a row may hold a megabyte of verdicts. */

import { Rows } from "../kit/rows.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

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

const SETTLED_COLUMNS = `id, carries, outcome, turns, calls, prompt_tokens, completion_tokens, cached_tokens, judge_calls,
  judge_prompt_tokens, judge_completion_tokens, lost_calls, charge, ended_at, finish_seq`;

export class EndedRows {
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** What the books are told of those after `finishSeq`. */
  settled(finishSeq: number, limit: number): SettledRow[] {
    const query = `select ${SETTLED_COLUMNS} from rollouts where finish_seq > ? order by finish_seq limit ?`;
    return this.#rows.all<SettledRow>(query, finishSeq, limit);
  }

  /** Bytes of the trajectories of those after `finishSeq`. */
  bytes(finishSeq: number, limit: number): number[] {
    const query = "select bytes from rollouts where finish_seq > ? order by finish_seq limit ?";
    return this.#rows.all<{ bytes: number }>(query, finishSeq, limit).map(({ bytes }) => bytes);
  }
}
