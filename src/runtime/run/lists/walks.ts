/**
 * In which order the rows of a run are walked for a list, and by which index. An index is made when a list first needs it:
 * from the start it would be billed with every row of every run. Making one writes a row for each rollout that has the
 * number, and from then on one more for each that gets it.
 *
 * A walk is ordered by the number, then by `seq`; those without the number come after it, by `seq`. Where a term names few
 * rows (an error, a group, a task) it is of those alone.
 */
import type { FilterTerm, Measure, RolloutSort, Sorting } from "../../../contract/filter.ts";
import type { ListCursor } from "../../contract/list-wire.ts";
import { Bound, numberIn, prefixIn } from "./conditions.ts";

/** Rows that one call looks at. */
export const SCANNED = 20_000;
/** So many rows are sorted anew for each page, before the index of the sort is walked instead. */
const FEW = 5000;

/** Rows `r` to walk: a table by an index, and the conditions of that index and on it. */
interface Source {
  readonly from: string;
  readonly where: (bound: Bound) => string[];
}
interface Index {
  readonly name: string;
  readonly on: string;
  readonly where: string;
}
/** `has`: the condition of having the number at all; null where every row does. */
interface Key {
  readonly value: string;
  readonly has: string | null;
  readonly ties: readonly string[];
}

const SEQ = ["r.seq"];
const HAS_ANSWERED = "r.status != 'running'";
const KEYS: { readonly [Sort in RolloutSort]: Key } = {
  dispatched: { value: "r.seq", has: null, ties: [] },
  group: { value: "r.group_index", has: null, ties: ["r.slot", "r.attempt"] },
  ended: { value: "r.finish_seq", has: "r.finish_seq is not null", ties: SEQ },
  started: { value: "r.started_at", has: "r.started_at is not null", ties: SEQ },
  reward: { value: "r.reward", has: "r.reward is not null", ties: SEQ },
  turns: { value: "r.turns", has: HAS_ANSWERED, ties: SEQ },
  calls: { value: "r.calls", has: HAS_ANSWERED, ties: SEQ },
  tokens: { value: "r.prompt_tokens + r.completion_tokens", has: HAS_ANSWERED, ties: SEQ },
  duration: { value: "r.ended_at - r.started_at", has: "r.ended_at is not null", ties: SEQ },
};
/** Those that are there from the start. */
const BUILT_IN: { readonly [Sort in RolloutSort]?: string } = {
  dispatched: "rollouts r",
  group: "rollouts r indexed by sqlite_autoindex_rollouts_1",
  ended: "rollouts r indexed by rollouts_finished",
};
const IN_FLIGHT: Source = {
  from: "rollouts r indexed by rollouts_in_flight",
  where: () => ["r.status != 'done'"],
};
const NAMED = {
  error: "reason",
  stop: "stop_condition",
  outcome: "outcome",
  example: "example_id",
} as const;

/** A statement that gives `seq` and `value` of the next rows in order; whoever runs it bounds how many. */
export interface Walk {
  readonly statement: string;
  /** Those without the number are still to come after these. */
  readonly hasRest: boolean;
}

export function walkOf(
  sql: SqlStorage,
  terms: readonly FilterTerm[],
  { by, descending }: Sorting,
  after: ListCursor | null,
  bound: Bound,
): Walk {
  const few = fewRows(sql, terms, by);
  const key = few === null && by.kind === "score" ? STORED_SCORE : keyOf(by, bound);
  if (after !== null && after.value === null) {
    const { from, where } = few ?? { from: "rollouts r", where: () => [] };
    const { has } = keyOf(by, bound);
    // No index finds them, so each call looks at a range of them all.
    const range = `r.seq > ${bound.add(after.seq)} and r.seq <= ${bound.add(after.seq + SCANNED)}`;
    const rest = [...where(bound), `not (${has ?? "1"})`, range];
    return { statement: statementOf(from, "null", rest, SEQ, ""), hasRest: false };
  }
  const { from, where } = few ?? sourceOf(sql, by);
  const limits = limitsOf(terms, by);
  const conditions = [
    ...where(bound),
    ...(key.has === null ? [] : [key.has]),
    ...limits.map(({ op, value }) => `${key.value} ${op} ${bound.add(value)}`),
    ...(after === null ? [] : [behind(sql, key, after, descending, bound)]),
  ];
  const statement = statementOf(from, key.value, conditions, [key.value, ...key.ties], descending ? " desc" : "");
  return { statement, hasRest: limits.length === 0 && key.has !== null };
}

/** As scores.ts keeps them. */
const STORED_SCORE: Key = { value: "r.score", has: "1", ties: SEQ };

function keyOf(by: Measure<RolloutSort>, bound: Bound): Key {
  if (by.kind === "field") return KEYS[by.field];
  const value = numberIn(by, bound);
  return { value, has: `${value} is not null`, ties: SEQ };
}

function statementOf(
  from: string,
  value: string,
  conditions: readonly string[],
  columns: readonly string[],
  direction: string,
): string {
  const where = conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
  const order = columns.map((column) => column + direction).join(", ");
  return `select r.seq as seq, ${value} as value from ${from} ${where} order by ${order}`;
}

/** Behind this place. Of a group's members the row itself says where they stand. */
function behind(sql: SqlStorage, { value, ties }: Key, after: ListCursor, descending: boolean, bound: Bound): string {
  const op = descending ? "<" : ">";
  if (ties.length === 0) return `${value} ${op} ${bound.add(after.value)}`;
  if (ties.length === 1) {
    // The first of the two is what the index is searched by.
    const at = bound.add(after.value);
    return `${value} ${op}= ${at} and (${value} ${op} ${at} or r.seq ${op} ${bound.add(after.seq)})`;
  }
  const query = "select group_index, slot, attempt from rollouts where seq = ?";
  const [place] = sql.exec<{ group_index: number; slot: number; attempt: number }>(query, after.seq).toArray();
  const { group_index, slot, attempt } = place ?? { group_index: after.value, slot: 0, attempt: 0 };
  const bindings = [group_index, slot, attempt].map((one) => bound.add(one));
  return `(${[value, ...ties].join(", ")}) ${op} (${bindings.join(", ")})`;
}

function sourceOf(sql: SqlStorage, by: Measure<RolloutSort>): Source {
  if (by.kind === "score") {
    return { from: "score_values r", where: (bound) => [`r.name = ${bound.add(by.name)}`] };
  }
  const built = BUILT_IN[by.field];
  if (built !== undefined) return { from: built, where: () => [] };
  const { value, has } = KEYS[by.field];
  const plain = (text: string) => text.replaceAll("r.", "");
  return { from: indexed(sql, { name: by.field, on: plain(value), where: plain(has ?? "1") }), where: () => [] };
}

function indexed(sql: SqlStorage, { name, on, where }: Index): string {
  sql.exec(`create index if not exists rollouts_by_${name} on rollouts (${on}) where ${where}`);
  return `rollouts r indexed by rollouts_by_${name}`;
}

/** What the terms say of the number that is sorted by: where the walk begins and ends. Null passes none of them. */
function limitsOf(terms: readonly FilterTerm[], by: Measure<RolloutSort>): { op: string; value: number }[] {
  const name = by.kind === "score" ? by.name : by.field;
  return terms.flatMap((term) => {
    if ((term.kind !== "number" && term.kind !== "score") || term.negated) return [];
    const same = by.kind === "score" ? term.kind === "score" && term.name === name : isField(term, name);
    const [value] = term.values;
    return same && term.values.length === 1 && typeof value === "number" ? [{ op: term.op, value }] : [];
  });
}

function isField(term: FilterTerm, name: string): boolean {
  return term.kind === "number" && term.field === name;
}

/** The rows of a term that names some: all of them where they come as they were dispatched, else if they are few. */
function fewRows(sql: SqlStorage, terms: readonly FilterTerm[], by: Measure<RolloutSort>): Source | null {
  for (const term of terms) {
    const source = term.negated ? inFlight(term) : rowsOf(sql, term);
    if (source === null) continue;
    const inOrder = by.kind === "field" && by.field === "dispatched";
    if (inOrder || countUpTo(sql, source, FEW + 1) <= FEW) return source;
  }
  return null;
}

function countUpTo(sql: SqlStorage, { from, where }: Source, most: number): number {
  const bound = new Bound();
  const conditions = where(bound).join(" and ");
  const counted = `select count(*) as n from (select 1 from ${from} where ${conditions} limit ${most})`;
  return sql.exec<{ n: number }>(counted, ...bound.values).one().n;
}

/** `-status:done`, which is what is in flight. */
function inFlight(term: FilterTerm): Source | null {
  return term.kind === "word" && term.field === "status" && term.values.join() === "done" ? IN_FLIGHT : null;
}

function rowsOf(sql: SqlStorage, term: FilterTerm): Source | null {
  if (term.kind === "word" && term.field === "status") return term.values.includes("done") ? null : IN_FLIGHT;
  if ((term.kind !== "word" && term.kind !== "number") || term.values.length !== 1) return null;
  if (term.kind === "number" && term.op !== "=") return null;
  const [value] = term.values;
  // Most rollouts of a run are scored.
  if (value === null || value === undefined || value === "scored") return null;
  return namedRows(sql, term.field, value);
}

function namedRows(sql: SqlStorage, field: string, value: string | number): Source | null {
  if (field === "group") {
    const from = "rollouts r indexed by sqlite_autoindex_rollouts_1";
    return { from, where: (bound) => [`r.group_index = ${bound.add(value)}`] };
  }
  if (field === "step") {
    const from = "rollouts r indexed by sqlite_autoindex_rollouts_1";
    const shipped = "r.group_index in (select group_index from train_groups where step =";
    return { from, where: (bound) => [`${shipped} ${bound.add(value)})`] };
  }
  if (field === "task") {
    const from = indexed(sql, { name: "task", on: "task_key", where: "task_key is not null" });
    return { from, where: (bound) => ["r.task_key is not null", prefixIn(String(value), bound)] };
  }
  const column = Object.entries(NAMED).find(([name]) => name === field)?.[1];
  if (column === undefined) return null;
  const from = indexed(sql, { name: column, on: column, where: `${column} is not null` });
  return { from, where: (bound) => [`r.${column} is not null`, `r.${column} = ${bound.add(value)}`] };
}
