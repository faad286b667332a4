/** Suspects of a run (run-suspects.ts), in its own SQLite. `boot`: the process in which it is named at this moment. */

import type { SuspectKey } from "../contract/wire.ts";
import type { NamedEntry } from "./suspects.ts";

type SuspectRow = { deaths: number; boot: string | null };

export class SuspectStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  find(key: SuspectKey): NamedEntry | null {
    const found = "select deaths, boot from suspects where key = ?";
    return this.#sql.exec<SuspectRow>(found, key).toArray()[0] ?? null;
  }

  name(key: SuspectKey, boot: string | null, deaths: number): void {
    this.#sql.exec("insert or replace into suspects values (?, ?, ?)", key, deaths, boot);
  }

  drop(key: SuspectKey): void {
    this.#sql.exec("delete from suspects where key = ?", key);
  }
}
