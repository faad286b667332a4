/**
 * Translates the terms of a filter to SQL conditions over the row `r` of `rollouts`. Every condition is 0 or 1, never
 * null: a missing value matches only `null`, and a negated term matches exactly the other rows. Input is bound, never
 * written into a statement. A term binds at most its values and one name, so a filter needs fewer than 60 of the 100
 * values that a statement may bind.
 */
import { type FlagField, type Measure, type NumberField, PREFIX_FIELDS } from "../../../contract/filter.ts";
import type { Place, RowTerm } from "../../messages/list-wire.ts";

/** The bound values of one statement; `add` returns the placeholder of a value. */
export class Bound {
  readonly values: SqlStorageValue[] = [];

  add(value: SqlStorageValue): string {
    this.values.push(value);
    return `?${this.values.length}`;
  }
}

/** A value that exists only after the rollout has reported: until then its row has zeros. */
const answered = (value: string) => `case when r.status = 'running' then null else ${value} end`;

const NUMBERS: { readonly [Field in NumberField]: string } = {
  reward: "r.reward",
  turns: answered("r.turns"),
  calls: answered("r.calls"),
  tokens: answered("r.prompt_tokens + r.completion_tokens"),
  duration: "r.ended_at - r.started_at",
  group: "r.group_index",
  slot: "r.slot",
  attempt: "r.attempt",
  example: "r.example_id",
  step: "(select step from train_groups t where t.group_index = r.group_index)",
};
const WORDS = {
  outcome: "r.outcome",
  status: "r.status",
  error: "r.reason",
  stop: "r.stop_condition",
  member: "r.member",
  task: "r.task_key",
  id: "r.id",
} as const;

/** The SQL expression of the number. */
export function numberIn<Field extends NumberField>(measure: Measure<Field>, bound: Bound): string {
  if (measure.kind === "field") return NUMBERS[measure.field];
  const name = bound.add(measure.name);
  return `(select value ->> 'score' from json_each(r.scores) where value ->> 'name' = ${name} limit 1)`;
}

/** `stopping`: the whole run is being stopped. */
export function conditionOf(terms: readonly RowTerm[], bound: Bound, stopping: boolean): string {
  const all = terms.map((term) => {
    const condition = termIn(term, bound, stopping);
    return term.negated ? `not (${condition})` : `(${condition})`;
  });
  return all.length === 0 ? "1" : all.join(" and ");
}

function termIn(term: RowTerm, bound: Bound, stopping: boolean): string {
  if (term.kind === "text") return textIn(term.text, bound);
  if (term.kind === "among") return `(r.group_index, r.slot, r.attempt) in (${placesIn(term.places, bound)})`;
  if (term.kind === "flag") return `(${flagIn(term.field, stopping)}) = ${term.value ? 1 : 0}`;
  if (term.kind === "word") {
    const column = WORDS[term.field];
    const prefixed = PREFIX_FIELDS.includes(term.field);
    return wordIn(column, term.values, bound, prefixed ? (prefix) => beginsWith(column, bound.add(prefix)) : null);
  }
  const measure: Measure<NumberField> =
    term.kind === "score" ? { kind: "score", name: term.name } : { kind: "field", field: term.field };
  const value = numberIn(measure, bound);
  if (term.op !== "=") return `ifnull(${value} ${term.op} ${bound.add(term.values[0] ?? null)}, 0)`;
  return amongIn(value, term.values, bound);
}

/** A statement that returns the group, slot and attempt of each place. SQLite runs it once, not for each row. */
export function placesIn(places: readonly Place[], bound: Bound): string {
  const at = bound.add(JSON.stringify(places));
  return `select value ->> 0 as group_index, value ->> 1 as slot, value ->> 2 as attempt from json_each(${at})`;
}

/** For a list without known values `in` would match nothing, so `is null` is used. */
function amongIn(value: string, values: readonly (string | number | null)[], bound: Bound): string {
  const known = values.filter((one) => one !== null).map((one) => bound.add(one));
  const orNull = values.includes(null) ? 1 : 0;
  return known.length === 0 ? `${value} is null` : `ifnull(${value} in (${known.join(", ")}), ${orNull})`;
}

function wordIn(
  column: string,
  values: readonly (string | null)[],
  bound: Bound,
  one: ((word: string) => string) | null,
): string {
  if (one === null) return amongIn(column, values, bound);
  return values.map((value) => (value === null ? `${column} is null` : `ifnull(${one(value)}, 0)`)).join(" or ");
}

/** Values with this prefix, as a range: an index can answer it, and no character is special in it. */
export function beginsWith(value: string, prefix: string): string {
  return `${value} >= ${prefix} and ${value} < ${prefix} || char(1114111)`;
}

function flagIn(field: FlagField, stopping: boolean): string {
  if (field === "truncated") return "r.is_truncated = 1";
  if (field === "judged") return "r.judgements is not null";
  if (field === "superseded") return "r.superseded_by is not null";
  return `r.status != 'done' and ${stopping ? "1" : "r.cancel is not null"}`;
}

/** Not `like`: its pattern may have only 50 bytes, and some characters are special in it. */
function textIn(text: string, bound: Bound): string {
  const asked = `lower(${bound.add(text)})`;
  const within = (value: string) => `instr(lower(ifnull(${value}, '')), ${asked}) > 0`;
  const found = [
    within("r.error ->> 'message'"),
    within("r.error ->> 'error_chain_repr'"),
    within("r.task_key"),
    within("r.task_text"),
    `exists (select 1 from json_each(r.scoring_errors) where ${within("value ->> 'error'")})`,
    within("(select text from first_prompts p where p.group_index = r.group_index)"),
  ];
  return found.join(" or ");
}
