/**
 * Ended rollouts whose next attempt is not dispatched yet, in a run's own SQLite. How a retry changes the counts is in
 * control.ts and accounting.ts.
 */
import type { RolloutEntry } from "../messages/run-records.ts";

export class RetryStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /**
   * Queues another attempt for every counting rollout that ended for one of the reasons. Null: those that failed, have
   * no score, or were stopped by the deadline. `whole`: groups are scored together, so members that ended well are
   * queued too, and a group still in flight is left out. The same holds for groups that continue anyway: the `cut` one,
   * of which some members were never dispatched, and one whose earlier retry is only partly dispatched. Returns how
   * many were queued.
   */
  add(reasons: readonly string[] | null, whole: boolean, cut: number | null = null): number {
    const wanted = `status = 'done' and superseded_by is null and outcome != 'scored'
      and (case when ?1 is null then outcome in ('failed', 'unscored') or reason = 'deadline'
           else reason in (select value from json_each(?1)) end)`;
    const grouped = `status = 'done' and superseded_by is null
      and (outcome in ('scored', 'unscored') or (${wanted}))
      and (group_index = ?2 or group_index in (select group_index from rollouts where ${wanted})
        or group_index in (select group_index from retries join rollouts using (seq)))
      and group_index not in (select group_index from rollouts where status != 'done')`;
    const asked = reasons === null ? null : JSON.stringify(reasons);
    this.#sql.exec(
      `insert into retries select seq from rollouts where ${whole ? grouped : wanted} on conflict do nothing`,
      ...(whole ? [asked, cut] : [asked]),
    );
    return this.#sql.exec<{ n: number }>("select changes() as n").one().n;
  }

  /** Queued rollouts, oldest first. */
  first(limit: number): RolloutEntry[] {
    return this.#sql
      .exec<RolloutEntry>("select rollouts.* from retries join rollouts using (seq) order by seq limit ?", limit)
      .toArray();
  }

  drop(seq: number): void {
    this.#sql.exec("delete from retries where seq = ?", seq);
  }

  /** True if a member of the group is queued. */
  awaits(group: number): boolean {
    const queued = "select 1 from retries join rollouts using (seq) where group_index = ? limit 1";
    return this.#sql.exec(queued, group).toArray().length > 0;
  }
}
