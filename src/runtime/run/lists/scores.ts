/**
 * Scores by their names as numbers that can be sorted: a row of `scores` is JSON, of which no index knows the names. The
 * table has the values of one name once a list is sorted by it, and is brought up to date with each such list: a row is
 * written for each value. It keeps `NAMES` names: whoever may read a run fills no disk with it.
 */
const TABLES = [
  "create table if not exists score_values (name text, score real, seq integer, primary key (name, score, seq)) without rowid",
  "create table if not exists listed_scores (name text primary key, upto integer not null, used integer not null) without rowid",
];
/** Ends that one call looks at, and values that one takes away. */
const SLICE = 20_000;
/** With one more, the one goes that was not brought up to date for the longest. */
const NAMES = 20;

/** Takes the next slice of ends in. False: more are left, and the table is not to be read yet. */
export function fillScores(sql: SqlStorage, name: string, finished: number): boolean {
  for (const statement of TABLES) sql.exec(statement);
  const [known] = sql.exec<{ upto: number }>("select upto from listed_scores where name = ?", name).toArray();
  if (known === undefined && !makeRoom(sql)) return false;
  const upto = known?.upto ?? 0;
  if (upto >= finished) return true;
  // A name is noted before it has values, so that none has any which nobody knows of: those would never go.
  note(sql, name, upto);
  const last = Math.min(finished, upto + SLICE);
  sql.exec(
    `insert or ignore into score_values
      select ?1, min(value ->> 'score'), seq from rollouts, json_each(scores)
        where finish_seq > ?2 and finish_seq <= ?3 and value ->> 'name' = ?1 and value ->> 'score' is not null
        group by seq`,
    name,
    upto,
    last,
  );
  note(sql, name, last);
  return last >= finished;
}

/** The name has its values up to that end, and was listed last of all. */
function note(sql: SqlStorage, name: string, upto: number): void {
  const used = "(select ifnull(max(used), 0) + 1 from listed_scores)";
  sql.exec(`insert or replace into listed_scores values (?, ?, ${used})`, name, upto);
}

/** Takes the next slice of the values away that have to go. False: more are left. */
function makeRoom(sql: SqlStorage): boolean {
  const names = sql.exec<{ name: string }>("select name from listed_scores order by used").toArray();
  const [oldest] = names;
  if (oldest === undefined || names.length < NAMES) return true;
  const { name } = oldest;
  // Whoever lists by it meanwhile begins it anew.
  sql.exec("update listed_scores set upto = 0 where name = ?", name);
  const first = "select name, score, seq from score_values where name = ? limit ?";
  sql.exec(`delete from score_values where (name, score, seq) in (${first})`, name, SLICE);
  if (sql.exec("select 1 from score_values where name = ? limit 1", name).toArray().length > 0) return false;
  sql.exec("delete from listed_scores where name = ?", name);
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
