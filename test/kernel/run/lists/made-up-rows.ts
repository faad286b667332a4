/**
 * Rollouts in groups of four, in the order of their dispatch. Of every ten, one is running, one is scoring, one failed,
 * one was cancelled, one is unscored and five are scored; their numbers are computed from their position. The task text
 * exists for those that have ended. In an ended run none is running or scoring.
 */
const ROWS = `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ?1),
  kinds(least, many) as (select cast(?2 as integer), 10 - cast(?2 as integer)),
  made as (select i, many, least + i % many as kind, (i * 7919) % 101 as dice from n cross join kinds)
  insert into rollouts (seq, group_index, slot, attempt, id, status, outcome, reason, ask_at, example_id, task_key, task_text,
    stop_condition, is_truncated, turns, calls, prompt_tokens, completion_tokens, started_at, ended_at, error, reward,
    scores, finish_seq)
  select i + 1, i / 4, i % 4, 0, 'ro_' || i, case kind when 0 then 'running' when 1 then 'scoring' else 'done' end,
    case kind when 0 then null when 1 then null when 2 then 'failed' when 3 then 'cancelled' when 4 then 'unscored'
      else 'scored' end,
    case kind when 2 then case when dice % 2 = 0 then 'provider' else 'timeout' end when 3 then 'user'
      when 4 then 'judge' end,
    0, i / 4, printf('%08x', i / 4),
    case when kind > 1 then 'What is ' || (i / 4) || ' twice?' end, case when kind > 2 then case when dice > 50 then 'max_turns_reached' else 'done' end end,
    dice > 90, case when kind = 0 then 0 else 1 + dice % 9 end, case when kind = 0 then 0 else 1 + dice % 11 end,
    case when kind = 0 then 0 else dice * 13 end, case when kind = 0 then 0 else dice * 3 end,
    1000000 + i, case when kind > 1 then 1000000 + i + dice * 100 end,
    case when kind = 2 then '{"error":"ModelError","message":"the endpoint said No Way %_ ' || i || '","error_chain_repr":""}'
      end,
    case when kind > 4 then dice / 100.0 end,
    case when kind > 4 then '[{"name":"exact","score":' || (dice % 3) || ',"weight":1}]' end,
    case when kind > 1 then (i / many) * 8 + kind - 1 end
  from made`;

/** Returns how many of them have ended. */
export function makeUpRows(sql: SqlStorage, rollouts: number, hasEnded: boolean): number {
  sql.exec(ROWS, rollouts, hasEnded ? 2 : 0);
  return sql.exec<{ n: number }>("select max(finish_seq) as n from rollouts").one().n;
}
