/** A run on an object's real storage, advanced by hand: no queue, no alarm, no consumer. */

import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { RunObject } from "../../src/index.ts";
import type { RolloutEntry } from "../../src/kernel/messages/run-records.ts";
import type { RunSpec } from "../../src/kernel/messages/wire.ts";
import { answer, dispatch, requestCancel, score } from "../../src/kernel/run/accounting.ts";
import { retry } from "../../src/kernel/run/control.ts";
import { ACCOUNTING_HOOKS } from "../../src/kernel/run/object.ts";
import { pendingOf } from "../../src/kernel/run/standing.ts";
import { RunStore } from "../../src/kernel/run/store.ts";
import { inside } from "./platform.ts";
import { idOf, RUN_SPEC, reportOf, scoreOf } from "./run-rows.ts";

const WELL = { failure: null, cancelled: null } as const;
const FAILED = { failure: "provider", cancelled: null } as const;
const AGAIN = { classes: null, key: null, hash: "" } as const;

/** A new run in a new object. */
export function byHand<T>(given: Partial<RunSpec>, use: (hand: Hand) => T | Promise<T>): Promise<T> {
  const run_id = crypto.randomUUID();
  return inside(env.RUN.getByName(run_id), RunObject, (_, { storage }) => use(new Hand(storage, { run_id, ...given })));
}

/** One run, advanced by hand. */
export class Hand {
  readonly store: RunStore;
  readonly spec: RunSpec;
  readonly sql: SqlStorage;
  now = 1000;

  constructor(storage: DurableObjectStorage, given: Partial<RunSpec>) {
    this.sql = storage.sql;
    this.store = new RunStore(storage, ACCOUNTING_HOOKS);
    this.spec = { ...RUN_SPEC, ...given };
    this.store.create(this.spec);
  }

  rows(status: RolloutEntry["status"]): RolloutEntry[] {
    return this.sql.exec<RolloutEntry>("select * from rollouts where status = ? order by seq", status).toArray();
  }

  dispatch(count = pendingOf(this.spec, this.store.head())): void {
    dispatch(
      this.store,
      this.spec,
      count,
      ({ group, slot, attempt }) => {
        return idOf({ group, slot, attempt }) + this.spec.run_id;
      },
      this.now,
    );
  }

  /**
   * All running rollouts answer, the first `failing` of them badly. Returns the scoring groups that are complete then.
   */
  answer(failing = 0): (number | null)[] {
    return this.rows("running").map((row, at) => {
      const how = at < failing ? FAILED : WELL;
      return answer(this.store, this.spec, reportOf(row, how), this.now).unit;
    });
  }

  /** Returns the scoring group that is complete then. */
  answerOne(row: RolloutEntry): number | null {
    return answer(this.store, this.spec, reportOf(row, WELL), this.now).unit;
  }

  score(): void {
    const waiting = this.rows("scoring").map((row) => scoreOf(row, 1));
    score(this.store, this.spec, waiting, this.now);
  }

  stop(): void {
    requestCancel(this.store, this.spec, "deadline", this.now);
  }

  retry(): void {
    expect(retry(this.store, this.spec, AGAIN, this.now)).toBeNull();
  }
}
