/**
 * Migrates rollouts that earlier releases stored to the current shape. Each step has a name and raises the schema by
 * one. A step is never edited after release, since stored rollouts depend on it.
 */
import { RolloutError } from "../../contract/errors.ts";
import { ROLLOUT_SCHEMA } from "../../contract/trajectory.ts";

/** A stored rollout of any schema, or the part of one that is stored in one piece. */
export interface StoredRollout {
  readonly schema: number;
}

export interface RolloutMigration {
  readonly name: string;
  /** The schema before the step. */
  readonly from: number;
  readonly change: <Stored extends StoredRollout>(stored: Stored) => StoredRollout;
}

/** Empty: the shape of stored rollouts has not changed yet. */
export const ROLLOUT_MIGRATIONS: readonly RolloutMigration[] = [];

/** The rollout in this release's shape. Throws if a later release wrote it: it must wait for that release. */
export function migrateRollout(
  stored: StoredRollout,
  { schema, steps } = { schema: ROLLOUT_SCHEMA, steps: ROLLOUT_MIGRATIONS },
): StoredRollout {
  if (stored.schema > schema) {
    throw new RolloutError(
      `this rollout was stored with schema ${stored.schema}, but this release supports ${schema}: deploy the newer release again`,
    );
  }
  return steps
    .filter(({ from }) => from >= stored.schema)
    .reduce<StoredRollout>((rollout, { from, change }) => ({ ...change(rollout), schema: from + 1 }), stored);
}
