/**
 * Reservations of rollouts and judge claims that could not be reached, in the run's own SQLite: each until a late
 * report of its spending arrives. Also releases of such reservations, until the audit log has them. The rules are in
 * cap.ts.
 */
import type { LostCalls, LostReservation } from "../../core/costs/call-budget.ts";
import { Rows } from "../kit/rows.ts";

export const LOST_RESERVATIONS_SCHEMA = [
  "create table lost_holds (name text primary key, calls integer not null, micros integer not null)",
];

export const RELEASES_SCHEMA = [
  "alter table lost_holds add column released integer not null default 0",
  // `entry`: number in the audit log.
  "create table releases (entry integer primary key, calls integer not null, micros integer not null)",
];

type Release = { readonly entry: number; readonly calls: number; readonly micros: number };

export function nameOfRollout(seq: number): string {
  return `rollout/${seq}`;
}

export function nameOfClaim(scoringGroup: number, claim: number): string {
  return `unit/${scoringGroup}/${claim}`;
}

export class LostReservations {
  readonly #rows: Rows;
  /** Undefined: not read yet. */
  #unnotified: Release | null | undefined;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  add(name: string, { calls, micros }: LostCalls): void {
    this.#rows.insert("lost_holds", { name, calls, micros });
  }

  /** Removes the reservation; null if it never existed, or was removed before. */
  take(name: string): LostReservation | null {
    const taken = this.#rows.one<{ calls: number; micros: number; released: number }>(
      "delete from lost_holds where name = ? returning calls, micros, released",
      name,
    );
    return taken === null ? null : { ...taken, released: taken.released === 1 };
  }

  /** Releases all reservations. `entry`: the number of the audit-log entry for it. */
  release({ calls, micros }: LostCalls, entry: number): void {
    this.#rows.all("update lost_holds set released = 1 where released = 0");
    this.#rows.insert("releases", { entry, calls, micros });
    this.#unnotified = undefined;
  }

  /** The first release that is not in the audit log. */
  get unnotified(): Release | null {
    if (this.#unnotified === undefined)
      this.#unnotified = this.#rows.one<Release>("select * from releases order by entry");
    return this.#unnotified;
  }

  forgetRelease({ entry }: Release): void {
    this.#rows.all("delete from releases where entry = ?", entry);
    this.#unnotified = undefined;
  }

  /** Must be called when writes are rolled back, or the storage is freed. */
  forget(): void {
    this.#unnotified = undefined;
  }
}
