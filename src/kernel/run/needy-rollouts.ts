/** Rollouts that wait for the rest of their run's cap, in the run's own SQLite. The rules are in cap.ts. */

import { LIMITS } from "../../contract/limits.ts";
import { Rows } from "../kit/rows.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

/** A running rollout that does not wait for money. */
export type RestingRow = Pick<RolloutEntry, "seq" | "id" | "host" | "asked">;

type NeedyRow = Pick<RolloutEntry, "seq" | "id" | "host" | "asked" | "needs">;

export class NeedyRollouts {
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** How many wait, and the least that one of them needs (micro-dollars); null if none waits. */
  sum(): { readonly count: number; readonly least: number | null } {
    const sum = this.#rows.one<{ count: number; least: number | null }>(
      `select count(*) as count, min(needs) as least from rollouts indexed by rollouts_that_wait
        where status = 'running' and needs > 0`,
    );
    return sum ?? { count: 0, least: null };
  }

  /** Waiting rollouts, in the order of their dispatch. */
  first(limit: number): NeedyRow[] {
    return this.#rows.all<NeedyRow>(
      `select seq, id, host, asked, needs from rollouts indexed by rollouts_that_wait
        where status = 'running' and needs > 0 order by seq limit ?`,
      limit,
    );
  }

  /** Rollouts that do not wait and have a reservation. */
  holding(limit: number): NeedyRow[] {
    return this.#rows.all<NeedyRow>(
      `select seq, id, host, asked, needs from rollouts
        where status != 'done' and status = 'running' and needs = 0 and ceiling > 0 limit ?`,
      limit,
    );
  }

  /** Running rollouts that do not wait, in the order of their dispatch. */
  resting(): RestingRow[] {
    return this.#rows.all<RestingRow>(
      `select seq, id, host, asked from rollouts
        where status != 'done' and status = 'running' and needs = 0 order by seq limit ?`,
      LIMITS.maxConcurrent,
    );
  }
}
