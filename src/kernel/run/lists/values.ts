/**
 * Values by which lists are sorted or filtered, each under a name: numbers, words, and scores (whose names no index of
 * `rollouts` can have). A name's values are stored when a list first needs them, for rollouts that have ended, since
 * those do not change. Each call adds one slice, so the run's other calls wait for one slice at most, and a run that is
 * never listed writes nothing. At most `NAMES` names are stored, so that readers cannot fill the disk.
 */
import { Bound } from "./conditions.ts";

const TABLES = [
  "create table if not exists list_values (name text, value, seq integer, primary key (name, value, seq)) without rowid",
  "create table if not exists listed_values (name text primary key, upto integer not null, used integer not null) without rowid",
];
/** How many ends one call reads, and how many values one call deletes. */
const SLICE = 20_000;
/** Before a further name is added, the one not updated for the longest time is removed. */
const NAMES = 20;

/** `value`: the SQL expression of the value in row `r`. */
export interface Listing {
  readonly name: string;
  readonly value: (bound: Bound) => string;
  /** How many ends one call reads, if reading the value is slow. */
  readonly most?: number;
}

/** Adds the next slice of ends. False: more are left, and the values must not be read yet. */
export function fillValues(sql: SqlStorage, { name, value, most = SLICE }: Listing, finished: number): boolean {
  for (const statement of TABLES) sql.exec(statement);
  const [known] = sql.exec<{ upto: number }>("select upto from listed_values where name = ?", name).toArray();
  if (known === undefined && !makeRoom(sql)) return false;
  const upto = known?.upto ?? 0;
  if (upto >= finished) return true;
  // A name is registered before it has values: values without a registered name would never be deleted.
  note(sql, name, upto);
  const last = Math.min(finished, upto + most);
  const bound = new Bound();
  const ended = `r.finish_seq > ${bound.add(upto)} and r.finish_seq <= ${bound.add(last)}`;
  const found = `select ${bound.add(name)}, ${value(bound)} as value, r.seq from rollouts r where ${ended} and value is not null`;
  sql.exec(`insert or ignore into list_values ${found}`, ...bound.values);
  note(sql, name, last);
  return last >= finished;
}

/** Registers that the name has its values up to that end and was used last. */
function note(sql: SqlStorage, name: string, upto: number): void {
  const used = "(select ifnull(max(used), 0) + 1 from listed_values)";
  sql.exec(`insert or replace into listed_values values (?, ?, ${used})`, name, upto);
}

/** Deletes the next slice of values to remove. False: more are left. */
function makeRoom(sql: SqlStorage): boolean {
  const names = sql.exec<{ name: string }>("select name from listed_values order by used").toArray();
  const [oldest] = names;
  if (oldest === undefined || names.length < NAMES) return true;
  const { name } = oldest;
  // A list that needs the name meanwhile starts it again.
  sql.exec("update listed_values set upto = 0 where name = ?", name);
  const first = "select name, value, seq from list_values where name = ? limit ?";
  sql.exec(`delete from list_values where (name, value, seq) in (${first})`, name, SLICE);
  if (sql.exec("select 1 from list_values where name = ? limit 1", name).toArray().length > 0) return false;
  sql.exec("delete from listed_values where name = ?", name);
  return true;
}

const SAMPLED = 200;

/** Score names of the rollouts that ended first and last. */
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
