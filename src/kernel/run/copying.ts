/**
 * What a copy of a run needs besides the storage of its object, and what a restored run must find out again.
 *
 * Invariants. Rollouts that were in flight continue in the copies of their shards. One that was begun after its shard
 * was copied begins again. The ledger was copied before its runs, so the run sends it again what it lacks.
 */
import { hasDatabase } from "../environment/live-objects.ts";
import { trajectoryKey } from "../kit/names.ts";
import type { CopyNeeds } from "../kit/stored-object.ts";
import { largeTrajectories } from "./records.ts";
import type { RunStore } from "./store.ts";

/**
 * The shards of a run whose rollouts have databases are left out: a shard and its databases cannot be copied at one
 * moment, so those rollouts begin again.
 */
export function copyNeedsOf(store: RunStore, sql: SqlStorage): CopyNeeds {
  const spec = store.spec();
  if (spec === null) return { files: [], shards: [] };
  const keys = largeTrajectories(sql, store.head(), store.segmentsAfter(0, Number.MAX_SAFE_INTEGER));
  const query = "select distinct host from rollouts where status = 'running' and host is not null";
  const shards = hasDatabase(spec) ? [] : sql.exec<{ host: number }>(query).toArray();
  return {
    files: keys.map((digest) => trajectoryKey(spec.scope, spec.run_id, digest)),
    shards: shards.map(({ host }) => host),
  };
}

/** Nothing was taken from the run in flight: rollouts ask for money from the beginning, and D1 and the ledger are behind. */
export function correctCopiedRun(store: RunStore, sql: SqlStorage): void {
  if (store.spec() === null) return;
  store.transaction(() => {
    sql.exec("update rollouts set asked = 0, needs = 0, misses = 0 where status = 'running'");
    const head = store.head();
    store.saveHead({ ...head, row_current: false, books: { ...head.books, ends: 0, pushes: 0, settled: 0 } });
  });
  store.forget();
}
