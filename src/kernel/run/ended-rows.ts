/** Ended rollouts in the order of their ends, with only the columns needed: a row may hold a megabyte of judgements. */

import { Rows } from "../kit/rows.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

/** The columns of an ended rollout that go to the ledger. */
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
  | "judge_micros"
  | "unmetered"
  | "lost_calls"
  | "charge"
  | "ended_at"
  | "finish_seq"
>;

const SETTLED_COLUMNS = `id, carries, outcome, turns, calls, prompt_tokens, completion_tokens, cached_tokens, judge_calls,
  judge_prompt_tokens, judge_completion_tokens, judge_micros, unmetered, lost_calls, charge, ended_at, finish_seq`;

export class EndedRows {
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** The rows after `finishSeq`, for the ledger. */
  settled(finishSeq: number, limit: number): SettledRow[] {
    const query = `select ${SETTLED_COLUMNS} from rollouts where finish_seq > ? order by finish_seq limit ?`;
    return this.#rows.all<SettledRow>(query, finishSeq, limit);
  }

  /** The trajectory sizes of the rows after `finishSeq`, in bytes. */
  bytes(finishSeq: number, limit: number): number[] {
    const query = "select bytes from rollouts where finish_seq > ? order by finish_seq limit ?";
    return this.#rows.all<{ bytes: number }>(query, finishSeq, limit).map(({ bytes }) => bytes);
  }
}
