/**
 * Values of rollouts by which lists are sorted or narrowed, each under a name: numbers, words, and scores, of which no
 * index of `rollouts` knows the names. The values of a name are kept once a list needs them, of the rollouts that have
 * ended, which change no more: a slice of them with each call, so a run of any size waits for one slice at most, and a
 * run that nobody lists writes nothing. `NAMES` of them are kept: whoever may read a run fills no disk with it.
 */
import { Bound } from "./conditions.ts";

const TABLES = [
  "create table if not exists list_values (name text, value, seq integer, primary key (name, value, seq)) without rowid",
  "create table if not exists listed_values (name text primary key, upto integer not null, used integer not null) without rowid",
];
/** Ends that one call looks at, and values that one takes away. */
const SLICE = 20_000;
/** With one more, the one goes that was not brought up to date for the longest. */
const NAMES = 20;

/** `value`: how the row `r` says it. */
export interface Listing {
  readonly name: string;
  readonly value: (bound: Bound) => string;
  /** Ends that one call looks at, where reading the value takes long. */
  readonly most?: number;
}

/** Takes the next slice of ends in. False: more are left, and its values are not to be read yet. */
export function fillValues(sql: SqlStorage, { name, value, most = SLICE }: Listing, finished: number): boolean {
  for (const statement of TABLES) sql.exec(statement);
  const [known] = sql.exec<{ upto: number }>("select upto from listed_values where name = ?", name).toArray();
  if (known === undefined && !makeRoom(sql)) return false;
  const upto = known?.upto ?? 0;
  if (upto >= finished) return true;
  // A name is noted before it has values, so that none has any which nobody knows of: those would never go.
  note(sql, name, upto);
  const last = Math.min(finished, upto + most);
  const bound = new Bound();
  const ended = `r.finish_seq > ${bound.add(upto)} and r.finish_seq <= ${bound.add(last)}`;
  const found = `select ${bound.add(name)}, ${value(bound)} as value, r.seq from rollouts r where ${ended} and value is not null`;
  sql.exec(`insert or ignore into list_values ${found}`, ...bound.values);
  note(sql, name, last);
  return last >= finished;
}

/** The name has its values up to that end, and was listed last of all. */
function note(sql: SqlStorage, name: string, upto: number): void {
  const used = "(select ifnull(max(used), 0) + 1 from listed_values)";
  sql.exec(`insert or replace into listed_values values (?, ?, ${used})`, name, upto);
}

/** Takes the next slice of the values away that have to go. False: more are left. */
function makeRoom(sql: SqlStorage): boolean {
  const names = sql.exec<{ name: string }>("select name from listed_values order by used").toArray();
  const [oldest] = names;
  if (oldest === undefined || names.length < NAMES) return true;
  const { name } = oldest;
  // Whoever lists by it meanwhile begins it anew.
  sql.exec("update listed_values set upto = 0 where name = ?", name);
  const first = "select name, value, seq from list_values where name = ? limit ?";
  sql.exec(`delete from list_values where (name, value, seq) in (${first})`, name, SLICE);
  if (sql.exec("select 1 from list_values where name = ? limit 1", name).toArray().length > 0) return false;
  sql.exec("delete from listed_values where name = ?", name);
  return true;
}

const SAMPLED = 200;

/** Names that the first and the last rollouts to end have. */
export function scoreNames(sql: SqlStorage, finished: number): string[] {
  const names = sql.exec<{ name: string }>(
    `select distinct value ->> 'name' as name from rollouts, json_each(scores)
      where finish_seq > 0 and finish_seq <= ?1
      union select value ->> 'name' from rollouts, json_each(scores) where finish_seq > ?2`,
    SAMPLED,
    finished - SAMPLED,
  );
  return Array.from(names, ({ name }) => name);
}
