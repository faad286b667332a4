/** Replaces the rollouts of an ended run by invented ones, as if the run had counted each. */
import { rolloutId } from "../../src/core/ids.ts";
import { macWithin } from "../../src/kernel/kit/secrets.ts";
import type { RunSpec } from "../../src/kernel/messages/wire.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { makeUpRows } from "../kernel/run/lists/made-up-rows.ts";

/** False: the run has not ended. Only the next instance of its object will see the new rollouts. */
export function plantRollouts(storage: DurableObjectStorage, env: Env, rollouts: number): boolean {
  const store = new RunStore(storage, ACCOUNTING_HOOKS);
  const spec = store.spec();
  if (spec === null || store.head().settled_at === null) return false;
  const { sql } = storage;
  storage.transactionSync(() => {
    for (const table of ["rollouts", "segments", "trajectories"]) sql.exec(`delete from ${table}`);
    const finished = makeUpRows(sql, rollouts, true);
    nameRows(sql, env, spec);
    const head = store.head();
    store.saveHead({
      ...head,
      ...{ status: "completed", stop: null, error: null, dispatched: rollouts, in_flight: 0, running: 0 },
      ...{ scored: countOf(sql, "scored")[""] ?? 0, unscored: countOf(sql, "unscored") },
      ...{ failed: countOf(sql, "failed"), cancelled: countOf(sql, "cancelled") },
      // The ledger and R2 are not notified of invented rollouts.
      ...{ finished, segmented: finished, books: { ...head.books, ends: finished }, row_current: false },
    });
  });
  return true;
}

/** With the ids that rollouts in their slots have. */
function nameRows(sql: SqlStorage, env: Env, { run_id }: RunSpec): void {
  const mac = macWithin(env, run_id);
  const places = sql.exec<{ seq: number; group: number; slot: number; attempt: number }>(
    'select seq, group_index as "group", slot, attempt from rollouts',
  );
  for (const { seq, ...place } of places.toArray()) {
    sql.exec("update rollouts set id = ? where seq = ?", rolloutId(run_id, place, mac), seq);
  }
}

function countOf(sql: SqlStorage, outcome: string): Record<string, number> {
  const counted = sql.exec<{ reason: string; n: number }>(
    "select ifnull(reason, '') as reason, count(*) as n from rollouts where outcome = ? group by reason",
    outcome,
  );
  return Object.fromEntries(Array.from(counted, ({ reason, n }) => [reason, n]));
}
