/**
 * What is held for rollouts and claims of judges that could not be heard, in the run's own SQLite: each until it says after
 * all what it has spent. What that means stands in cap.ts.
 */
import type { LostCalls } from "../../core/billing/allowance.ts";
import { Rows } from "../kit/rows.ts";

export const LOST_HOLDS_SCHEMA = [
  "create table lost_holds (name text primary key, calls integer not null, micros integer not null)",
];

type LostHold = { readonly calls: number; readonly micros: number };

export function nameOfRollout(seq: number): string {
  return `rollout/${seq}`;
}

export function nameOfClaim(unit: number, claim: number): string {
  return `unit/${unit}/${claim}`;
}

export class LostHolds {
  readonly #rows: Rows;

  constructor(sql: SqlStorage) {
    this.#rows = new Rows(sql);
  }

  add(name: string, { calls, micros }: LostCalls): void {
    this.#rows.insert("lost_holds", { name, calls, micros });
  }

  /** It is there no more; null for one that was never there, or was taken before. */
  take(name: string): LostHold | null {
    return this.#rows.one<LostHold>("delete from lost_holds where name = ? returning calls, micros", name);
  }
}
