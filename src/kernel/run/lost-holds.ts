/**
 * What is held for rollouts and claims of judges that could not be heard, in the run's own SQLite: each until it says after
 * all what it has spent. And what was released of such holds, until the audit log has it. What that means stands in cap.ts.
 */
import type { LostCalls, LostHold } from "../../core/costs/allowance.ts";
import { Rows } from "../kit/rows.ts";

export const LOST_HOLDS_SCHEMA = [
  "create table lost_holds (name text primary key, calls integer not null, micros integer not null)",
];

export const RELEASES_SCHEMA = [
  "alter table lost_holds add column released integer not null default 0",
  // `entry`: of the audit log.
  "create table releases (entry integer primary key, calls integer not null, micros integer not null)",
];

type Release = { readonly entry: number; readonly calls: number; readonly micros: number };

export function nameOfRollout(seq: number): string {
  return `rollout/${seq}`;
}

export function nameOfClaim(unit: number, claim: number): string {
  return `unit/${unit}/${claim}`;
}

export class LostHolds {
  readonly #rows: Rows;
  /** Undefined: nobody has looked. */
  #untold: Release | null | undefined;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  add(name: string, { calls, micros }: LostCalls): void {
    this.#rows.insert("lost_holds", { name, calls, micros });
  }

  /** It is there no more; null for one that was never there, or was taken before. */
  take(name: string): LostHold | null {
    const taken = this.#rows.one<{ calls: number; micros: number; released: number }>(
      "delete from lost_holds where name = ? returning calls, micros, released",
      name,
    );
    return taken === null ? null : { ...taken, released: taken.released === 1 };
  }

  /** All that are there. `entry`: where the audit log is to say so. */
  release({ calls, micros }: LostCalls, entry: number): void {
    this.#rows.all("update lost_holds set released = 1 where released = 0");
    this.#rows.insert("releases", { entry, calls, micros });
    this.#untold = undefined;
  }

  /** The first that the audit log has not heard of. */
  get untold(): Release | null {
    if (this.#untold === undefined) this.#untold = this.#rows.one<Release>("select * from releases order by entry");
    return this.#untold;
  }

  told({ entry }: Release): void {
    this.#rows.all("delete from releases where entry = ?", entry);
    this.#untold = undefined;
  }

  /** To be called when what was written is taken back, or the storage is freed. */
  forget(): void {
    this.#untold = undefined;
  }
}
