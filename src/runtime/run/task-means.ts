/** A run's tasks with a scored rollout, by key: one slice of them, walked in the run's own SQLite. Reads only. */
import type { KeyRange, TaskMean } from "../contract/run-records.ts";

/** Keys begin with four hex digits, at least. */
const PREFIXES = 0x1_0000;

/** So many ranges that cover all keys, one after the other, and hold about equally many of them. */
export function keyRanges(count: number): KeyRange[] {
  const ranges = Math.min(PREFIXES, Math.max(1, count));
  const bound = (at: number) =>
    Math.ceil((at * PREFIXES) / ranges)
      .toString(16)
      .padStart(4, "0");
  return Array.from({ length: ranges }, (_, at) => ({
    from: at === 0 ? "" : bound(at),
    to: at === ranges - 1 ? null : bound(at + 1),
  }));
}

/** In order of keys. `metric`: the name of a score; null for the reward. */
export function taskMeans(sql: SqlStorage, metric: string | null, { from, to }: KeyRange): TaskMean[] {
  const score = `(select value ->> 'score' from json_each(scores) where value ->> 'name' = ?)`;
  const value = metric === null ? "reward" : score;
  // min(seq) decides which row the bare columns are of.
  const cursor = sql.exec<TaskMean & { first: number }>(
    `select task_key, avg(value) as mean, min(seq) as first, id as rollout_id,
       ifnull(example_id, group_index) as example_id
     from (select seq, id, task_key, example_id, group_index, ${value} as value from rollouts
       where status = 'done' and superseded_by is null and task_key >= ? and (? is null or task_key < ?))
     where value is not null group by task_key order by task_key`,
    ...(metric === null ? [] : [metric]),
    ...[from, to, to],
  );
  return Array.from(cursor, ({ first: _, ...task }) => task);
}
