/**
 * A run's rollouts as a filtered, sorted list. One call reads at most `rows` rows and returns where the next begins. A
 * list over all rollouts of a run needs many calls, so other calls wait for one slice at most.
 */

import { shortText } from "../../../contract/shown-text.ts";
import { largestGroup } from "../../../core/training/members.ts";
import type { ListCursor, ListedRollout, Sliced } from "../../messages/list-wire.ts";
import type { ListAnswer, ListAsk } from "../../messages/rpc.ts";
import type { RolloutEntry } from "../../messages/run-records.ts";
import { advantagesIn } from "../advantages.ts";
import { cancelReasonOf, stopsAll } from "../control.ts";
import { costOf } from "../report-sums.ts";
import type { RunStore } from "../store.ts";
import { Bound, conditionOf } from "./conditions.ts";
import type { Listed } from "./listed.ts";
import { SCANNED } from "./slice-size.ts";
import { makeTexts } from "./texts.ts";
import { walkOf } from "./walks.ts";

/** The limits of a summary. */
const SCORES_SHOWN = 20;
const MESSAGE_SHOWN = 200;

// A type, not an interface: SQLite cursors require an index signature.
type Row = Pick<
  RolloutEntry,
  | "seq"
  | "id"
  | "group_index"
  | "slot"
  | "attempt"
  | "superseded_by"
  | "status"
  | "outcome"
  | "reason"
  | "cancel"
  | "task_key"
  | "task_text"
  | "example_id"
  | "member"
  | "reward"
  | "scores"
  | "stop_condition"
  | "is_truncated"
  | "turns"
  | "calls"
  | "prompt_tokens"
  | "completion_tokens"
  | "judge_calls"
  | "judge_prompt_tokens"
  | "judge_completion_tokens"
  | "judge_micros"
  | "charge"
  | "started_at"
  | "unmetered"
  | "ended_at"
> & { error: string | null; message: string | null; step: number | null; judged: number };
type WalkedRow = Row & { value: number | null };

const COLUMNS = `r.seq, r.id, r.group_index, r.slot, r.attempt, r.superseded_by, r.status, r.outcome, r.reason, r.cancel,
  r.task_key, r.task_text, r.example_id, r.member, r.reward, r.scores, r.stop_condition, r.is_truncated, r.turns,
  r.calls, r.prompt_tokens, r.completion_tokens, r.judge_calls, r.judge_prompt_tokens, r.judge_completion_tokens, r.judge_micros,
  r.charge, r.unmetered, r.started_at, r.ended_at, r.error ->> 'error' as error, r.error ->> 'message' as message,
  g.step, r.judgements is not null as judged`;
const STEPS = "left join train_groups g on g.group_index = r.group_index";

export function rolloutSlice({ store, sql, spec }: Listed, ask: ListAsk<"rollouts">): ListAnswer<"rollouts"> {
  const { terms, sort, after, rows: scanned = SCANNED } = ask;
  makeTexts(sql, terms);
  // For each row's advantage, all members of its group are read.
  const limit = Math.min(ask.limit, Math.max(1, Math.floor(SCANNED / largestGroup(spec))));
  const bound = new Bound();
  const walk = walkOf({ sql, finished: store.head().finished, terms, sort, after, rows: scanned }, bound);
  if (walk === null) return { rows: [], next: { after } };
  const { statement, hasRest } = walk;
  const condition = conditionOf(terms, bound, stopsAll(store.head()));
  const found = sql
    .exec<WalkedRow>(
      `select ${COLUMNS}, w.value from (${statement} limit ${scanned}) w
        cross join rollouts r on r.seq = w.seq ${STEPS} where ${condition} limit ${limit}`,
      ...bound.values,
    )
    .toArray();
  const rows = summariesOf({ store, sql, spec }, found);
  const last = rows.at(-1);
  if (last !== undefined && rows.length === limit) return { rows, next: { after: last.at } };
  const next = lastWalked({ store, sql }, ask) ?? (hasRest ? { value: null, seq: 0 } : null);
  return { rows, next: next && { after: next } };
}

/** The row at which the walk stopped because of its limit; null if it reached the end. */
function lastWalked(
  { store, sql }: Pick<Listed, "store" | "sql">,
  { terms, sort, after, rows = SCANNED }: ListAsk<"rollouts">,
): ListCursor | null {
  if (after !== null && after.value === null) {
    const seq = after.seq + rows;
    return seq < store.lastSeq() ? { value: null, seq } : null;
  }
  const bound = new Bound();
  const walk = walkOf({ sql, finished: store.head().finished, terms, sort, after, rows }, bound);
  if (walk === null) return after;
  const row = sql.exec<{ seq: number; value: number | null }>(
    `${walk.statement} limit 1 offset ${rows - 1}`,
    ...bound.values,
  );
  return row.toArray()[0] ?? null;
}

/** All attempts of the group, by slot. */
export function membersOf({ store, sql, spec }: Listed, group: number, most: number): ListedRollout[] {
  const rows = sql
    .exec<WalkedRow>(
      `select ${COLUMNS}, r.group_index as value from rollouts r ${STEPS}
        where r.group_index = ? order by r.slot, r.attempt limit ?`,
      group,
      most,
    )
    .toArray();
  return summariesOf({ store, sql, spec }, rows);
}

/** The task texts of these rollouts, where they are known. */
export function taskTexts({ sql }: Listed, seqs: ListAsk<"taskTexts">): ListAnswer<"taskTexts"> {
  const known = sql.exec<{ seq: number; text: string }>(
    `select seq, task_text as text from rollouts
      where seq in (select value from json_each(?)) and task_text is not null`,
    JSON.stringify(seqs),
  );
  return new Map(Array.from(known, ({ seq, text }) => [seq, text]));
}

/** How many rollouts of this slice, in the order of dispatch, match the filter. */
export function countMatches({ store, sql }: Listed, ask: ListAsk<"matches">): ListAnswer<"matches"> {
  const { terms } = ask;
  makeTexts(sql, terms);
  const bound = new Bound();
  const range = sliceIn(ask, bound);
  const condition = conditionOf(terms, bound, stopsAll(store.head()));
  const counted = `select count(*) as n from rollouts r where ${range} and ${condition}`;
  return { n: sql.exec<{ n: number }>(counted, ...bound.values).one().n, slices: slicesOf(store, ask) };
}

type Numbered = Sliced & { readonly slice: number };

/** Slices in the order of dispatch: the condition of one slice, and the number of slices. */
export function sliceIn({ slice, rows = SCANNED }: Numbered, bound: Bound): string {
  return `r.seq > ${bound.add(slice * rows)} and r.seq <= ${bound.add((slice + 1) * rows)}`;
}
export function slicesOf(store: RunStore, { rows = SCANNED }: Sliced): number {
  return Math.max(1, Math.ceil(store.lastSeq() / rows));
}

function summariesOf({ store, spec }: Listed, rows: readonly WalkedRow[]): ListedRollout[] {
  const advantages = advantagesIn(store, spec, rows);
  const head = store.head();
  const prices = spec.money?.policy ?? null;
  return rows.map((row): ListedRollout => {
    const { scores, left } = scoresOf(row);
    return {
      at: { value: row.value, seq: row.seq },
      ...{ id: row.id, group: row.group_index, slot: row.slot, attempt: row.attempt },
      superseded_by: row.superseded_by,
      status: row.status === "queued" ? "running" : row.status,
      cancelling: row.status !== "done" && cancelReasonOf(head, row) !== null,
      ...{ outcome: row.outcome, reason: row.reason, task_key: row.task_key, task_text: row.task_text },
      ...{ example_id: row.example_id, member: row.member, reward: row.reward },
      advantage: advantages.get(row.seq) ?? null,
      scores,
      scores_left_out: left,
      stop_condition: row.stop_condition,
      is_truncated: row.is_truncated === 1,
      ...(row.status === "running" ? NOT_ANSWERED : usedBy(row)),
      ...timesOf(row),
      error: row.error === null ? null : { error: row.error, message: firstLine(row.message ?? "") },
      cost: costOf(row, prices),
      step: row.step,
      has_judgements: row.judged === 1,
    };
  });
}

const NOT_ANSWERED = { turns: null, calls: null, prompt_tokens: null, completion_tokens: null };

function usedBy({ turns, calls, prompt_tokens, completion_tokens }: Row) {
  return { turns, calls, prompt_tokens, completion_tokens };
}

function timesOf({ started_at, ended_at }: Row): Pick<ListedRollout, "started_at" | "ended_at" | "duration"> {
  const duration = started_at === null || ended_at === null ? null : (ended_at - started_at) / 1000;
  return { started_at: seconds(started_at), ended_at: seconds(ended_at), duration };
}

function scoresOf({ scores }: Row): { scores: ListedRollout["scores"]; left: number } {
  const all = JSON.parse(scores ?? "[]") as ListedRollout["scores"];
  const shown = all.slice(0, SCORES_SHOWN).map(({ name, score, weight }) => ({ name, score, weight }));
  return { scores: shown, left: all.length - shown.length };
}

function firstLine(message: string): string {
  const [line = ""] = message.split("\n", 1);
  return shortText(line, MESSAGE_SHOWN);
}

function seconds(at: number | null): number | null {
  return at === null ? null : Math.floor(at / 1000);
}
