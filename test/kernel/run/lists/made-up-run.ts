/** A run with any number of generated rows: its lists are compared with the input. */
import { env } from "cloudflare:workers";
import { parseFilter } from "../../../../src/contract/filter.ts";
import { RunObject } from "../../../../src/index.ts";
import type { RowTerm } from "../../../../src/kernel/messages/list-wire.ts";
import type { ListAnswer, ListAsk, ListQuestion } from "../../../../src/kernel/messages/rpc.ts";
import type { RunSpec } from "../../../../src/kernel/messages/wire.ts";
import { lookAt } from "../../../../src/kernel/run/lists/look.ts";
import { countingRows, type RowsRun } from "../../counting-rows.ts";
import type { Life } from "../../life.ts";
import { inside } from "../../platform.ts";
import { Hand } from "../../run-by-hand.ts";
import { makeUpRows } from "./made-up-rows.ts";

export interface MadeUp {
  readonly sql: SqlStorage;
  readonly look: Look;
  /** The same in an instance of the object that is killed at some write. */
  readonly lookIn: (life: Life) => Look;
  /** Rows read by the statements of looks. */
  readonly rows: RowsRun;
}

export type Look = <Name extends ListQuestion>(question: Name, ask: ListAsk<Name>) => ListAnswer<Name>;

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
    const finished = makeUpRows(sql, rollouts, false);
    store.saveHead({ ...store.head(), dispatched: rollouts, finished, in_flight: rollouts - finished });
    const lookBy = (by: SqlStorage): Look => {
      return (question, ask) => lookAt({ store, sql: by, spec }, question, ask);
    };
    const counting = countingRows(sql);
    const lookIn = (life: Life) => lookBy(life.storage(storage).sql);
    return use({ sql, look: lookBy(counting.sql), lookIn, rows: counting.rows });
  });
}

/** The terms of a filter that is not about reviews. */
export function rowTermsOf(filter: string): readonly RowTerm[] {
  const parsed = parseFilter(filter);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.terms.filter((term) => term.kind !== "review");
}
