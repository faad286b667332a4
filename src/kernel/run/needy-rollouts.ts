/** Rollouts that wait for what is left of their run's cap, in the run's own SQLite. What that means stands in cap.ts. */

import { Rows } from "../kit/rows.ts";
import type { RolloutEntry } from "../messages/run-records.ts";

type NeedyRow = Pick<RolloutEntry, "seq" | "id" | "host" | "asked" | "needs">;

export class NeedyRollouts {
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  /** How many there are, and the least that one of them needs (micro-dollars); null where there is none. */
  sum(): { readonly count: number; readonly least: number | null } {
    const sum = this.#rows.one<{ count: number; least: number | null }>(
      `select count(*) as count, min(needs) as least from rollouts indexed by rollouts_that_wait
        where status = 'running' and needs > 0`,
    );
    return sum ?? { count: 0, least: null };
  }

  /** In the order they were dispatched. */
  first(limit: number): NeedyRow[] {
    return this.#rows.all<NeedyRow>(
      `select seq, id, host, asked, needs from rollouts indexed by rollouts_that_wait
        where status = 'running' and needs > 0 order by seq limit ?`,
      limit,
    );
  }

  /** Those that do not wait, and may spend something. */
  holding(limit: number): NeedyRow[] {
    return this.#rows.all<NeedyRow>(
      `select seq, id, host, asked, needs from rollouts
        where status != 'done' and status = 'running' and needs = 0 and ceiling > 0 limit ?`,
      limit,
    );
  }

  /** Those that nobody has asked to stop. */
  going(limit: number): Pick<RolloutEntry, "seq">[] {
    return this.#rows.all<Pick<RolloutEntry, "seq">>(
      `select seq from rollouts indexed by rollouts_that_wait
        where status = 'running' and needs > 0 and cancel is null limit ?`,
      limit,
    );
  }
}
