/**
 * A run's rollouts as lists: filtered and sorted, by group, and the distribution of a number over them. The run's
 * object answers slice by slice, each of bounded work, and the slices are joined here. If few rollouts pass a filter,
 * the list takes as many calls as the run has slices, one after the other.
 */
import { type parseMeasure, parseSort, type Sorting } from "../../contract/filter.ts";
import {
  GROUP_SORTS,
  type GroupQuery,
  type GroupSummaryList,
  type GroupView,
  type RolloutQuery,
  type RolloutSummary,
  type RolloutSummaryList,
} from "../../contract/rollout-list.ts";
import type { Scope } from "../../contract/scope.ts";
import { decodeCursor, encodeCursor } from "../kit/cursor.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import type { ListCursor, ListedGroup, ListedRollout, RowTerm } from "../messages/list-wire.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { ListAsk, RunRpc } from "../messages/rpc.ts";
import { type SliceSize, sliceSizeOf } from "../run/lists/slice-size.ts";
import { lostRun, notFound, openRun } from "./read-run.ts";
import { readTerms } from "./read-terms.ts";
import { type Searched, searchPrompts } from "./search-prompts.ts";

export interface Run {
  readonly env: Env;
  readonly scope: Scope;
  readonly id: string;
  readonly object: RunRpc;
}

export async function openList(env: Env, scope: Scope, id: string): Promise<Result<Run>> {
  const found = await openRun(env, scope, id);
  return found.ok ? { ok: true, value: { env, scope, id, object: found.value.object } } : found;
}

export async function listRollouts(
  env: Env,
  scope: Scope,
  id: string,
  query: RolloutQuery,
): Promise<Result<RolloutSummaryList>> {
  const run = await openList(env, scope, id);
  if (!run.ok) return run;
  const terms = await readTerms(run.value, query.filter);
  const sort = parseSort(query.sort);
  const after = query.after === undefined ? null : cursorOf(id, query.sort, query.after);
  if (sort === null || after === undefined) return notACursor();
  const scores = await knownScores(run.value, terms, sort.by);
  if (!scores.ok) return scores;
  const searched = await searchedFor(run.value, terms);
  // While no rollout has a score, none has this one.
  const from = after ?? (scores.value === "none" ? { value: null, seq: 0 } : null);
  const looked = await sliced(run.value, terms, sort.by.kind);
  if (looked === null) return lostRun(id);
  const rows = await walk(looked, { terms, sort, after: from, limit: query.limit + 1 });
  const matched = query.matched ? await countAll(looked, terms) : null;
  if (rows === null || searched === undefined) return lostRun(id);
  const page = rows.slice(0, query.limit);
  const [first, last] = [page[0], page.at(-1)].map((row) => {
    return row === undefined ? null : encodeCursor([id, query.sort, row.at.value, row.at.seq]);
  });
  const data = page.map((row) => summaryOf(id, row));
  const more = { has_more: rows.length > query.limit, matched, searched };
  return { ok: true, value: { object: "list", data, first_id: first ?? null, last_id: last ?? null, ...more } };
}

function summaryOf(run_id: string, { at: _, ...row }: ListedRollout): RolloutSummary {
  return { object: "rollout_summary", run_id, ...row };
}

/**
 * Undefined if the cursor does not belong to this list: it is of another run or order, or before the first rollout.
 * Rollouts without a sort value are read from that place on, one range for each call.
 */
function cursorOf(id: string, sort: string, text: string): ListCursor | undefined {
  const [run, order, value, seq] = decodeCursor(text) ?? [];
  const placed = typeof seq === "number" && Number.isSafeInteger(seq) && seq >= 0 && typeof value !== "string";
  return run === id && order === sort && placed && value !== undefined ? { value, seq } : undefined;
}

function notACursor(): Result<never> {
  return refuse("invalid_request", "after: is not the last_id of a page of this list (same run, same order)", "after");
}

/** A run that is read in slices of one size. */
export type SlicedRun = Run & { readonly size: SliceSize };

/** Null if the run is lost. `by`: the kind of number that is read from each rollout. */
export async function sliced(
  run: Run,
  terms: readonly RowTerm[],
  by: Sorting["by"]["kind"] = "field",
): Promise<SlicedRun | null> {
  const isLong = by === "score" || terms.some(({ kind }) => kind === "text" || kind === "score");
  const sizes = isLong ? await run.object.look("rowSizes", null) : NO_SIZES;
  return sizes && { ...run, size: sliceSizeOf(terms, by, sizes) };
}
const NO_SIZES = { texts: 0, scores: 0 };

/** Waits for the organisation's scheduling turn before a slice. */
export function beforeSlice({ scope, size }: SlicedRun): Promise<void> {
  return PROCESS_SCHEDULER.spend(scope.orgId, size.steps);
}

async function walk(run: SlicedRun, ask: ListAsk<"rollouts">): Promise<ListedRollout[] | null> {
  const { rows: size } = run.size;
  const rows: ListedRollout[] = [];
  for (let after = ask.after; rows.length < ask.limit; ) {
    await beforeSlice(run);
    const slice = await run.object.look("rollouts", { ...ask, after, limit: ask.limit - rows.length, rows: size });
    if (slice === null) return null;
    rows.push(...slice.rows);
    if (slice.next === null) break;
    after = slice.next.after;
  }
  return rows;
}

async function countAll(run: SlicedRun, terms: readonly RowTerm[]): Promise<number | null> {
  let all = 0;
  for (let slice = 0; ; slice += 1) {
    await beforeSlice(run);
    const counted = await run.object.look("matches", { terms, slice, rows: run.size.rows });
    if (counted === null) return null;
    all += counted.n;
    if (slice + 1 >= counted.slices) return all;
  }
}

/** Null if the filter searches no text; undefined if the run is lost. */
export async function searchedFor(
  { env, scope, id, object }: Run,
  terms: readonly RowTerm[],
): Promise<Searched | null | undefined> {
  if (!terms.some(({ kind }) => kind === "text")) return null;
  return (await searchPrompts(env, { scope, run_id: id }, object)) ?? undefined;
}

/** Refuses the name of a score that no rollout has, once there are scores. `none`: there are no scores yet. */
export async function knownScores(
  { id, object }: Run,
  terms: readonly RowTerm[],
  measure: Sorting["by"] | ReturnType<typeof parseMeasure>,
  param = "sort",
): Promise<Result<"all" | "none">> {
  const filtered = terms.flatMap((term) => (term.kind === "score" ? [term.name] : []));
  const asked = measure?.kind === "score" ? [...filtered, measure.name] : filtered;
  if (asked.length === 0) return { ok: true, value: "all" };
  const sample = await object.look("scoreNames", null);
  if (sample === null) return lostRun(id);
  const missing = asked.filter((name) => !sample.includes(name));
  if (missing.length === 0) return { ok: true, value: "all" };
  const known = Object.keys((await object.view())?.report.metrics ?? {});
  const unknown = missing.find((name) => !known.includes(name));
  if (unknown === undefined) return { ok: true, value: "all" };
  if (known.length === 0) return { ok: true, value: "none" };
  const where = filtered.includes(unknown) ? "filter" : param;
  const message = `${where}: ${id} has no score called ${unknown}; it has: ${known.join(", ")}`;
  return refuse("invalid_request", message, where);
}

export async function listGroups(
  env: Env,
  scope: Scope,
  id: string,
  query: GroupQuery,
): Promise<Result<GroupSummaryList>> {
  const run = await openList(env, scope, id);
  if (!run.ok) return run;
  const terms = await readTerms(run.value, query.filter);
  const by = GROUP_SORTS.find((sort) => sort === query.sort.replace(/^-/, ""));
  const place = query.after === undefined ? null : cursorOf(id, query.sort, query.after);
  if (by === undefined || place === undefined) return notACursor();
  const scores = await knownScores(run.value, terms, null);
  if (!scores.ok) return scores;
  const searched = await searchedFor(run.value, terms);
  const sort = { by, descending: query.sort.startsWith("-") };
  const after = place && { value: place.value, group: place.seq };
  const looked = await sliced(run.value, terms);
  if (looked === null) return lostRun(id);
  const rows = await mergeGroups(looked, { terms, sort, after, slice: 0, limit: query.limit + 1 });
  if (rows === null || searched === undefined) return lostRun(id);
  const page = rows.slice(0, query.limit);
  const [first, last] = [page[0], page.at(-1)].map((row) => {
    return row === undefined ? null : encodeCursor([id, query.sort, row.value, row.group]);
  });
  const data = page.map(({ value: _, ...row }) => ({ object: "group_summary" as const, run_id: id, ...row }));
  const more = { has_more: rows.length > query.limit, searched };
  return { ok: true, value: { object: "list", data, first_id: first ?? null, last_id: last ?? null, ...more } };
}

/** Merges the first groups of all slices. If sorted by number, it stops as soon as the page is full. */
async function mergeGroups(run: SlicedRun, ask: ListAsk<"groups">): Promise<ListedGroup[] | null> {
  let rows: ListedGroup[] = [];
  const { by, descending } = ask.sort;
  for (let slice = 0; ; slice += 1) {
    await beforeSlice(run);
    const found = await run.object.look("groups", { ...ask, slice, rows: run.size.rows });
    if (found === null) return null;
    rows = [...rows, ...found.rows].sort((one, other) => compare(one, other, descending)).slice(0, ask.limit);
    const full = by === "group" && rows.length === ask.limit;
    if (full || slice + 1 >= found.slices) return rows;
  }
}

function compare(one: ListedGroup, other: ListedGroup, descending: boolean): number {
  const direction = descending ? -1 : 1;
  if (one.value === null || other.value === null) {
    const nulls = Number(one.value === null) - Number(other.value === null);
    return nulls === 0 ? (one.group - other.group) * direction : nulls;
  }
  return (one.value - other.value || one.group - other.group) * direction;
}

export async function readGroup(env: Env, scope: Scope, id: string, group: number): Promise<Result<GroupView>> {
  const run = await openList(env, scope, id);
  if (!run.ok) return run;
  const record = await run.value.object.look("group", group);
  if (record === null) return lostRun(id);
  if (record.found === null) return notFound("group", String(group));
  const { group: found, members, ...rest } = record.found;
  const { value: _, ...summary } = { value: null, ...found };
  const value = { ...summary, object: "group" as const, run_id: id, ...rest };
  return { ok: true, value: { ...value, members: members.map((member) => summaryOf(id, member)) } };
}
