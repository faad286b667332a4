/** What lists of a run's rollouts are read from. */
import type { RunSpec } from "../../messages/wire.ts";
import type { RunStore } from "../store.ts";

export interface Listed {
  readonly store: RunStore;
  readonly sql: SqlStorage;
  readonly spec: RunSpec;
}
