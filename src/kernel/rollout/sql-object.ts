/**
 * The database of one rollout, for `can.sql`: a facet of the object that plays it. Its storage is separate from the
 * platform's and from that of other rollouts. It is deleted when the rollout is over, at the latest with the object's
 * storage (`deleteAll` deletes facets too). An object of its own would need a request for each deletion, and one that
 * failed would leave rows behind. The class is declared in wrangler.toml all the same.
 *
 * Invariants. A call's answer is written to the journal in the same transaction as its effects, and leaves this object
 * only when both are on disk; so a rollout's state is never ahead of its database. The journal is in the key-value part
 * of the storage, which SQLite's authorizer makes inaccessible to queries. It holds the calls of one hook: the next
 * hook has another number of writes, which shows that the outcome of the earlier hook is stored. A running call blocks
 * the process, so it waits for a scheduling turn of its organisation; the calls of a rollout keep their order.
 */
import { DurableObject } from "cloudflare:workers";
import { EnvError, InfraError, SqlWorkError } from "../../contract/errors.ts";
import {
  errorOf,
  RolloutSql,
  type SqlEntry,
  type SqlJournal,
  type SqlOutcome,
  type SqlPlace,
  type SqlRunner,
  type SqlValue,
} from "../../core/environments/rollout-sql.ts";
import type { SqlDatabase } from "../../core/sql/database.ts";
import type { StageClock } from "../environment/stage-clock.ts";
import { backoffMs } from "../kit/backoff.ts";
import { PROCESS_SCHEDULER, stepsOfText } from "../kit/fair-scheduler.ts";
import { idsOf, logError } from "../kit/log.ts";
import { Semaphore } from "../kit/semaphore.ts";
import { isPassing } from "../kit/storage-faults.ts";
import type { RolloutSqlRpc, Serves, SqlAnswer, SqlCaller } from "../messages/rpc.ts";
import type { RolloutSlot, RolloutSpec } from "../messages/wire.ts";
import type { RolloutStore } from "./store.ts";

/** How many rows are still read of a query that returned too many: its tables stay locked until it has ended. */
const READ_ON = 100_000;
/** A step of a statement takes about 10 ns, a step of a scheduling turn about 50 ns. */
const STEPS_PER_TURN_STEP = 5;
/** Temporary faults in a row before a call fails. The waits between them take one to two minutes together. */
const MOST_FAULTS = 8;

export class RolloutSqlObject extends DurableObject<Env> implements Serves<RolloutSqlRpc> {
  #writes: number | null = null;
  readonly #calls = new Semaphore(() => 1);

  async exec(
    { org, writes }: SqlCaller,
    place: SqlPlace,
    query: string,
    params: readonly SqlValue[],
  ): Promise<SqlAnswer> {
    return await this.#calls.run(async () => {
      const came = Date.now();
      const giveBack = await PROCESS_SCHEDULER.take(org);
      const waited_ms = Date.now() - came;
      let steps = stepsOfText(query.length);
      try {
        const sql = new RolloutSql(rolloutDatabase(this.ctx.storage), this.#journal(writes));
        const outcome = outcomeOf(sql, place, query, params);
        steps += sql.stepsTaken / STEPS_PER_TURN_STEP;
        return { outcome, waited_ms };
      } finally {
        giveBack(steps);
      }
    });
  }

  #journal(writes: number): SqlJournal {
    const { kv } = this.ctx.storage;
    const prefix = `call/${writes}/`;
    const keyOf = ({ effect, call }: SqlPlace) => `${prefix}${effect}/${call}`;
    if (this.#writes !== writes) {
      for (const [key] of kv.list({ prefix: "call/" })) {
        if (!key.startsWith(prefix)) kv.delete(key);
      }
      this.#writes = writes;
    }
    return {
      find: (place) => kv.get<SqlEntry>(keyOf(place)) ?? null,
      add: (entry) => kv.put(keyOf(entry), entry),
    };
  }
}

function outcomeOf(sql: RolloutSql, place: SqlPlace, query: string, params: readonly SqlValue[]): SqlOutcome {
  try {
    return { rows: sql.exec(place, query, params) };
  } catch (thrown) {
    if (thrown instanceof SqlWorkError) return { error: thrown.message, work: true };
    if (thrown instanceof EnvError) return { error: thrown.message };
    throw thrown;
  }
}

/** Every facet of an object has a name; each rollout has one facet. */
function facetOf({ group, slot, attempt }: RolloutSlot): string {
  return `sql/${group}/${slot}/${attempt}`;
}

/** Called when the rollout is over: its database is not used any more. */
export function dropDatabase(ctx: DurableObjectState, place: RolloutSlot): void {
  ctx.facets.delete(facetOf(place));
}

/**
 * Runs `can.sql` for the hooks of one rollout of the object. A call that met a temporary fault of the platform below is
 * made again: the journal makes sure that it has its effect once. The waits do not count as the hook's time.
 */
export function sqlOf(
  ctx: Pick<DurableObjectState<unknown>, "facets" | "exports">,
  env: Env,
  spec: RolloutSlot & Pick<RolloutSpec, "scope" | "rollout_id">,
  store: Pick<RolloutStore, "writes" | "noteSql">,
  clock: Pick<StageClock, "excuse" | "untimed">,
): SqlRunner {
  const database = (): RolloutSqlRpc => {
    const stub: unknown = ctx.facets.get(facetOf(spec), () => ({ class: ctx.exports.RolloutSqlObject }));
    return stub as RolloutSqlRpc;
  };
  const answerOf = async (...call: Parameters<RolloutSqlRpc["exec"]>): Promise<SqlAnswer> => {
    for (let failures = 0; ; failures += 1) {
      try {
        return await database().exec(...call);
      } catch (cause) {
        if (failures === MOST_FAULTS || !isPassing(env, cause)) {
          throw new InfraError("the rollout's database did not answer", { cause });
        }
        logError("a rollout's database does not answer", idsOf(spec), cause);
        await clock.untimed(scheduler.wait(backoffMs(failures, null, spec.rollout_id)));
      }
    }
  };
  return {
    async exec(place, query, params) {
      store.noteSql();
      const { outcome, waited_ms } = await answerOf(
        { org: spec.scope.orgId, writes: store.writes() },
        place,
        query,
        params,
      );
      clock.excuse(waited_ms);
      if ("error" in outcome) throw errorOf(outcome);
      return outcome.rows;
    },
  };
}

/** An object's SQLite with the interface that `can.sql` needs. */
export function rolloutDatabase(storage: DurableObjectStorage): SqlDatabase {
  return {
    rows: (query, params) => rowsOf(storage.sql, query, params),
    atomically: (run) => storage.transactionSync(run),
    sizeBytes: () => storage.sql.databaseSize,
  };
}

function* rowsOf(sql: SqlStorage, query: string, params: readonly SqlValue[]) {
  const cursor = sql.exec(query, ...params);
  try {
    for (let row = cursor.next(); row.done !== true; row = cursor.next()) yield row.value;
  } finally {
    // Nothing commits while a writing statement is unfinished. Its writes are done before its first row.
    let left = cursor.rowsWritten > 0 ? Number.POSITIVE_INFINITY : READ_ON;
    while (left > 0 && cursor.next().done !== true) left -= 1;
  }
}
