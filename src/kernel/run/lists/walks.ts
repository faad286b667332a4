/**
 * The order in which a list walks the rows of a run, and the index it uses: a permanent one, or values that are stored
 * when a list needs them (values.ts).
 *
 * A walk is ordered by the number, then by `seq`. Rows without the number follow, by `seq`. If a term selects few rows
 * (an error, a group, a task), only those are walked.
 */
import { type Measure, PREFIX_FIELDS, type RolloutSort, type Sorting } from "../../../contract/filter.ts";
import type { ListCursor, Place, RowTerm } from "../../messages/list-wire.ts";
import { Bound, beginsWith, numberIn, placesIn } from "./conditions.ts";
import { fillValues, type Listing } from "./values.ts";

/** Up to this many selected rows are sorted for each page; with more, the sort order is walked instead. */
const FEW = 5000;

/** The rows that a term selects, by `seq`. */
interface Named {
  readonly seqs: (bound: Bound) => string;
  /** The values that must be stored for it first; null if an index has them. */
  readonly listing: Listing | null;
  /** True if they come in the order of dispatch: a page of any number of them is read without sorting. */
  readonly inOrder: boolean;
}
/** `has`: the condition that a row has the number; null if all have it. `early`: some have it before they end. */
interface Key {
  readonly value: string;
  readonly has: string | null;
  readonly ties: readonly string[];
  readonly early?: boolean;
}

const SEQ = ["r.seq"];
const ANSWERED = { has: "r.status != 'running'", ties: SEQ, early: true };
const KEYS: { readonly [Sort in RolloutSort]: Key } = {
  dispatched: { value: "r.seq", has: null, ties: [] },
  group: { value: "r.group_index", has: null, ties: ["r.slot", "r.attempt"] },
  ended: { value: "r.finish_seq", has: "r.finish_seq is not null", ties: SEQ },
  started: { value: "r.started_at", has: "r.started_at is not null", ties: SEQ, early: true },
  reward: { value: "r.reward", has: "r.reward is not null", ties: SEQ },
  turns: { value: "r.turns", ...ANSWERED },
  calls: { value: "r.calls", ...ANSWERED },
  tokens: { value: "r.prompt_tokens + r.completion_tokens", ...ANSWERED },
  duration: { value: "r.ended_at - r.started_at", has: "r.ended_at is not null", ties: SEQ },
};
/** Indexes that exist permanently. */
const BUILT_IN: { readonly [Sort in RolloutSort]?: string } = {
  dispatched: "rollouts r",
  group: "rollouts r indexed by sqlite_autoindex_rollouts_1",
  ended: "rollouts r indexed by rollouts_finished",
};
const FLYING = "rollouts r indexed by rollouts_in_flight where r.status != 'done'";
const IN_FLIGHT: Named = { seqs: () => `select r.seq from ${FLYING}`, listing: null, inOrder: false };
const WORDS = {
  error: "r.reason",
  stop: "r.stop_condition",
  outcome: "r.outcome",
  example: "r.example_id",
  task: "r.task_key",
} as const;

/** A statement that returns `seq` and `value` of the next rows in order. The caller adds the limit. */
export interface Walk {
  readonly statement: string;
  /** True if rows without the number follow after these. */
  readonly hasRest: boolean;
}

/** The input of a walk. `finished`: number of ends so far. */
export interface Walked {
  readonly sql: SqlStorage;
  readonly finished: number;
  readonly terms: readonly RowTerm[];
  readonly sort: Sorting;
  readonly after: ListCursor | null;
  /** How many rows one call reads. */
  readonly rows: number;
}

/** Null: values that it needs are not all stored yet; this call has added one slice. */
export function walkOf(walked: Walked, bound: Bound): Walk | null {
  const { sql, finished, terms, sort, after, rows } = walked;
  const few = fewRows(walked);
  if (few === "later") return null;
  const { by, descending } = sort;
  const key = keyOf(by, bound);
  const direction = descending ? " desc" : "";
  if (after !== null && after.value === null)
    return { statement: restOf(few, key, after, rows, bound), hasRest: false };
  const limits = limitsOf(terms, by);
  const hasRest = limits.length === 0 && key.has !== null;
  const narrowed = (value: string, ties: readonly string[]) => [
    ...limits.map((limit) => `${value} ${limit.op} ${bound.add(limit.value)}`),
    ...(after === null ? [] : [behind(sql, { value, ties }, after, descending, bound)]),
  ];
  const built = builtFor(by);
  if (few?.inOrder === true && isField(by, "dispatched")) {
    return { statement: dispatchedOf(few, narrowed("v.seq", []), bound, direction), hasRest };
  }
  if (few !== null || built !== undefined) {
    const [from, joined] = few === null ? [built, []] : [joinedTo(few, bound), ["r.seq = v.seq"]];
    const having = key.has === null ? [] : [key.has];
    const where = conditionsOf([...joined, ...having, ...narrowed(key.value, key.ties)]);
    const order = [key.value, ...key.ties].map((column) => column + direction).join(", ");
    return { statement: `select r.seq as seq, ${key.value} as value from ${from} ${where} order by ${order}`, hasRest };
  }
  const listing = listingOf(by, rows);
  if (!fillValues(sql, listing, finished)) return null;
  const early = key.early ? [key.has, ...narrowed(key.value, SEQ)] : null;
  const kept = [`r.name = ${bound.add(listing.name)}`, ...narrowed("r.value", SEQ)];
  return { statement: keptOf(key, kept, early, direction), hasRest };
}

function builtFor(by: Measure<RolloutSort>): string | undefined {
  return by.kind === "field" ? BUILT_IN[by.field] : undefined;
}

/** The selected rows in their own order. */
function dispatchedOf({ seqs }: Named, conditions: readonly string[], bound: Bound, direction: string): string {
  return `select v.seq as seq, v.seq as value from (${seqs(bound)}) v ${conditionsOf(conditions)}
    order by v.seq${direction}`;
}

/** Stored values and those of rollouts in flight (`early`: their conditions), in one order. */
function keptOf(
  { value }: Key,
  kept: readonly string[],
  early: readonly (string | null)[] | null,
  direction: string,
): string {
  const flying = early === null ? "" : `union all select r.seq, ${value} from ${FLYING} and ${early.join(" and ")}`;
  return `select r.seq as seq, r.value as value from list_values r ${conditionsOf(kept)} ${flying}
    order by value${direction}, seq${direction}`;
}

/** Rows without the number: no index finds them, so each call reads a range of all rows. */
function restOf(few: Named | null, { has }: Key, { seq }: ListCursor, rows: number, bound: Bound): string {
  const range = `r.seq > ${bound.add(seq)} and r.seq <= ${bound.add(seq + rows)}`;
  const [from, joined] = few === null ? ["rollouts r", []] : [joinedTo(few, bound), ["r.seq = v.seq"]];
  return `select r.seq as seq, null as value from ${from} ${conditionsOf([...joined, `not (${has ?? "1"})`, range])} order by r.seq`;
}

function joinedTo({ seqs }: Named, bound: Bound): string {
  return `(${seqs(bound)}) v cross join rollouts r`;
}

function conditionsOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
}

function keyOf(by: Measure<RolloutSort>, bound: Bound): Key {
  if (by.kind === "field") return KEYS[by.field];
  const value = numberIn(by, bound);
  return { value, has: `${value} is not null`, ties: SEQ };
}

function listingOf(by: Measure<RolloutSort>, most: number): Listing {
  if (by.kind === "score") return { name: `score ${by.name}`, value: (bound) => numberIn(by, bound), most };
  return { name: by.field, value: () => KEYS[by.field].value };
}

/** The condition "after this position". For members of a group the position is read from the row. */
function behind(
  sql: SqlStorage,
  { value, ties }: Pick<Key, "value" | "ties">,
  after: ListCursor,
  descending: boolean,
  bound: Bound,
): string {
  const op = descending ? "<" : ">";
  if (ties.length === 0) return `${value} ${op} ${bound.add(after.value)}`;
  if (ties.length === 1) {
    // The first of the two conditions is the one that the index is searched by.
    const at = bound.add(after.value);
    return `${value} ${op}= ${at} and (${value} ${op} ${at} or r.seq ${op} ${bound.add(after.seq)})`;
  }
  const query = "select group_index, slot, attempt from rollouts where seq = ?";
  const [place] = sql.exec<{ group_index: number; slot: number; attempt: number }>(query, after.seq).toArray();
  const { group_index, slot, attempt } = place ?? { group_index: after.value, slot: 0, attempt: 0 };
  const bindings = [group_index, slot, attempt].map((one) => bound.add(one));
  return `(${[value, ...ties].join(", ")}) ${op} (${bindings.join(", ")})`;
}

/** The bounds that the terms set for the sorted number: the walk's beginning and end. They exclude null. */
function limitsOf(terms: readonly RowTerm[], by: Measure<RolloutSort>): { op: string; value: number }[] {
  return terms.flatMap((term) => {
    if ((term.kind !== "number" && term.kind !== "score") || term.negated) return [];
    const same = term.kind === "score" ? by.kind === "score" && term.name === by.name : isField(by, term.field);
    const [value] = term.values;
    return same && term.values.length === 1 && typeof value === "number" ? [{ op: term.op, value }] : [];
  });
}

function isField(by: Measure<RolloutSort>, field: string): boolean {
  return by.kind === "field" && by.field === field;
}

/** The rows selected by a term, if they are few or come in the requested order. */
function fewRows({ sql, finished, terms, sort: { by } }: Walked): Named | null | "later" {
  for (const term of terms) {
    const named = term.negated ? inFlight(term) : rowsOf(term);
    if (named === null) continue;
    if (named.listing !== null && !fillValues(sql, named.listing, finished)) return "later";
    const inOrder = named.inOrder && isField(by, "dispatched");
    if (inOrder || countUpTo(sql, named, FEW + 1) <= FEW) return named;
  }
  return null;
}

function countUpTo(sql: SqlStorage, { seqs }: Named, most: number): number {
  const bound = new Bound();
  const counted = `select count(*) as n from (${seqs(bound)} limit ${most})`;
  return sql.exec<{ n: number }>(counted, ...bound.values).one().n;
}

/** `-status:done` selects what is in flight. */
function inFlight(term: RowTerm): Named | null {
  return term.kind === "word" && term.field === "status" && term.values.join() === "done" ? IN_FLIGHT : null;
}

function rowsOf(term: RowTerm): Named | null {
  if (term.kind === "among") return amongRows(term.places);
  if (term.kind === "word" && term.field === "status") return term.values.includes("done") ? null : IN_FLIGHT;
  if ((term.kind !== "word" && term.kind !== "number") || term.values.length !== 1) return null;
  if (term.kind === "number" && term.op !== "=") return null;
  const [value] = term.values;
  // Most rollouts of a run are scored, so this term selects too many.
  if (value === null || value === undefined || value === "scored") return null;
  return namedRows(term.field, value);
}

function amongRows(places: readonly Place[]): Named {
  const seqs = (bound: Bound) => `select r.seq from (${placesIn(places, bound)}) p cross join
    rollouts r indexed by sqlite_autoindex_rollouts_1
    on r.group_index = p.group_index and r.slot = p.slot and r.attempt = p.attempt`;
  return { seqs, listing: null, inOrder: false };
}

/** A rollout's id begins with its group (core/ids.ts); the rest of the id is checked by the condition. */
const ID_OF_GROUP = /^ro_[0-9a-z]{26}_(0|[1-9a-z][0-9a-z]{0,6})_/;

function namedRows(field: string, value: string | number): Named | null {
  const grouped = "select r.seq from rollouts r indexed by sqlite_autoindex_rollouts_1 where r.group_index";
  if (field === "group") {
    return { seqs: (bound) => `${grouped} = ${bound.add(value)}`, listing: null, inOrder: false };
  }
  if (field === "step") {
    const shipped = `${grouped} in (select group_index from train_groups where step =`;
    return { seqs: (bound) => `${shipped} ${bound.add(value)})`, listing: null, inOrder: false };
  }
  if (field === "id") {
    const group = ID_OF_GROUP.exec(String(value))?.[1];
    return group === undefined ? null : namedRows("group", Number.parseInt(group, 36));
  }
  const column = Object.entries(WORDS).find(([name]) => name === field)?.[1];
  if (column === undefined) return null;
  const prefix = PREFIX_FIELDS.some((one) => one === field);
  const seqs = (bound: Bound) => {
    const at = bound.add(value);
    const is = (one: string) => (prefix ? beginsWith(one, at) : `${one} = ${at}`);
    return `select r.seq from list_values r where r.name = ${bound.add(field)} and ${is("r.value")}
      union all select r.seq from ${FLYING} and ${is(column)}`;
  };
  return { seqs, listing: { name: field, value: () => column }, inOrder: !prefix };
}
