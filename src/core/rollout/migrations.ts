/**
 * Rollouts stored by earlier releases, brought up to the shape of this one. Each step has a name and raises the schema
 * by one; none is ever edited once landed, since what it was written for is on disks we do not see.
 */
import { RolloutError } from "../../contract/errors.ts";
import { ROLLOUT_SCHEMA } from "../../contract/trajectory.ts";

/** A stored rollout, or the part of one that is kept in one piece, of whatever schema. */
export interface StoredRollout {
  readonly schema: number;
}

export interface RolloutMigration {
  readonly name: string;
  /** The schema it starts from. */
  readonly from: number;
  readonly change: <Stored extends StoredRollout>(stored: Stored) => StoredRollout;
}

/** None yet: this is the first release. */
export const ROLLOUT_MIGRATIONS: readonly RolloutMigration[] = [];

/** The same rollout in this release's shape. Throws for one that a later release wrote: it is to wait for that. */
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
