/** The sources of a list of a run's rollouts. */
import type { RunSpec } from "../../messages/wire.ts";
import type { RunStore } from "../store.ts";

export interface Listed {
  readonly store: RunStore;
  readonly sql: SqlStorage;
  readonly spec: RunSpec;
}
