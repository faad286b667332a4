/** A run whose rows are made up, of any number: what its lists say of them is compared with what was put in. */
import { env } from "cloudflare:workers";
import { RunObject } from "../../../../src/index.ts";
import type { ListAnswer, ListAsk, ListQuestion } from "../../../../src/runtime/contract/rpc.ts";
import type { RunSpec } from "../../../../src/runtime/contract/wire.ts";
import { lookAt } from "../../../../src/runtime/run/lists/look.ts";
import type { Life } from "../../account/life.ts";
import { Hand } from "../../hand-ledger.ts";
import { inside } from "../../platform.ts";

export interface MadeUp {
  readonly sql: SqlStorage;
  readonly look: Look;
  /** The same by an instance of the object that is killed at some write. */
  readonly lookIn: (life: Life) => Look;
  /** Rows that the statements of looks have read since it was asked last, and rows of indexes and tables they wrote. */
  readonly rows: () => { readonly read: number; readonly written: number };
}

export type Look = <Name extends ListQuestion>(question: Name, ask: ListAsk<Name>) => ListAnswer<Name>;

/**
 * Rollouts in groups of four, in the order of their dispatch: of every ten, one runs, one scores, one failed, one was
 * cancelled, one is unscored and five are scored; their numbers follow from where they stand.
 */
const ROWS = `with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < ?1),
  made as (select i, i % 10 as kind, (i * 7919) % 101 as dice from n)
  insert into rollouts (seq, group_index, slot, attempt, id, status, outcome, reason, ask_at, example_id, task_key,
    stop_condition, is_truncated, turns, calls, prompt_tokens, completion_tokens, started_at, ended_at, error, reward,
    scores, finish_seq)
  select i + 1, i / 4, i % 4, 0, 'ro_' || i, case kind when 0 then 'running' when 1 then 'scoring' else 'done' end,
    case kind when 0 then null when 1 then null when 2 then 'failed' when 3 then 'cancelled' when 4 then 'unscored'
      else 'scored' end,
    case kind when 2 then case when dice % 2 = 0 then 'provider' else 'timeout' end when 3 then 'user'
      when 4 then 'judge' end,
    0, i / 4, printf('%08x', i / 4), case when kind > 2 then case when dice > 50 then 'max_turns_reached' else 'done' end end,
    dice > 90, case when kind = 0 then 0 else 1 + dice % 9 end, case when kind = 0 then 0 else 1 + dice % 11 end,
    case when kind = 0 then 0 else dice * 13 end, case when kind = 0 then 0 else dice * 3 end,
    1000000 + i, case when kind > 1 then 1000000 + i + dice * 100 end,
    case when kind = 2 then '{"error":"ModelError","message":"the endpoint said No Way %_ ' || i || '","error_chain_repr":""}'
      end,
    case when kind > 4 then dice / 100.0 end,
    case when kind > 4 then '[{"name":"exact","score":' || (dice % 3) || ',"weight":1}]' end,
    case when kind > 1 then (i / 10) * 8 + kind - 1 end
  from made`;

export function madeUpRun<T>(
  rollouts: number,
  use: (run: MadeUp) => T | Promise<T>,
  given: Partial<RunSpec> = {},
): Promise<T> {
  const run_id = crypto.randomUUID();
  return inside(env.RUN.getByName(run_id), RunObject, (_, { storage }) => {
    const { sql } = storage;
    const asked = { run_id, rollouts_per_example: 4, num_examples: rollouts / 4, ...given };
    const { store, spec } = new Hand(storage, asked);
    sql.exec(ROWS, rollouts);
    const finished = sql.exec<{ n: number }>("select max(finish_seq) as n from rollouts").one().n;
    store.saveHead({ ...store.head(), dispatched: rollouts, finished, in_flight: rollouts - finished });
    const lookBy = (by: SqlStorage): Look => {
      return (question, ask) => lookAt({ store, sql: by, spec }, question, ask);
    };
    const counting = countingRows(sql);
    const lookIn = (life: Life) => lookBy(life.storage(storage).sql);
    return use({ sql, look: lookBy(counting.sql), lookIn, rows: counting.rows });
  });
}

function countingRows(sql: SqlStorage): { readonly sql: SqlStorage; readonly rows: MadeUp["rows"] } {
  let ran: Pick<SqlStorageCursor<Record<string, SqlStorageValue>>, "rowsRead" | "rowsWritten">[] = [];
  const exec = <Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: SqlStorageValue[]) => {
    const cursor = sql.exec<Row>(query, ...bindings);
    ran.push(cursor);
    return cursor;
  };
  const rows = () => {
    const sum = (of: "rowsRead" | "rowsWritten") => ran.reduce((all, cursor) => all + cursor[of], 0);
    const counted = { read: sum("rowsRead"), written: sum("rowsWritten") };
    ran = [];
    return counted;
  };
  return { sql: new Proxy(sql, { get: (of, name) => (name === "exec" ? exec : Reflect.get(of, name, of)) }), rows };
}
