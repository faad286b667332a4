/**
 * Texts that a filter searches in addition to the rollouts' rows: the beginning of each group's first prompt. They are
 * in trajectories, most of which are in R2. So each request that searches reads one slice of them, in the order of the
 * rollouts' ends, and stores them here: a row per group, up to `LIMITS.searchedGroups`.
 */
import { LIMITS } from "../../../contract/limits.ts";
import type { RowTerm } from "../../messages/list-wire.ts";
import type { ListAnswer, ListAsk } from "../../messages/rpc.ts";
import type { Listed } from "./listed.ts";

const TABLES = [
  "create table if not exists first_prompts (group_index integer primary key, text text not null)",
  "create table if not exists listed_prompts (one integer primary key, upto integer not null, groups integer not null)",
];

/** Creates the tables if a term searches texts. */
export function makeTexts(sql: SqlStorage, terms: readonly RowTerm[]): void {
  if (terms.some(({ kind }) => kind === "text")) for (const statement of TABLES) sql.exec(statement);
}

/** Stores more texts if they continue at the current position. Returns the position. */
export function searchedTexts({ store, sql }: Listed, more: ListAsk<"searched">): ListAnswer<"searched"> {
  for (const statement of TABLES) sql.exec(statement);
  const known = stateOf(sql);
  const of = store.head().finished;
  if (more === null || more.after !== known.upto) return { upto: known.upto, of, open: isOpen(known.groups) };
  const remaining = LIMITS.searchedGroups - known.groups;
  const added = more.texts.slice(0, remaining);
  for (const { group, text } of added) sql.exec("insert or ignore into first_prompts values (?, ?)", group, text);
  const groups = sql.exec<{ n: number }>("select count(*) as n from first_prompts").one().n;
  // If some did not fit, neither they nor later ones are covered.
  const upto = added.length < more.texts.length ? known.upto : more.upto;
  sql.exec("insert or replace into listed_prompts values (1, ?, ?)", upto, groups);
  return { upto, of, open: isOpen(groups) };
}

function stateOf(sql: SqlStorage): { upto: number; groups: number } {
  const [state] = sql.exec<{ upto: number; groups: number }>("select upto, groups from listed_prompts").toArray();
  return state ?? { upto: 0, groups: 0 };
}

function isOpen(groups: number): boolean {
  return groups < LIMITS.searchedGroups;
}
