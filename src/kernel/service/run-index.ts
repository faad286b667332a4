/**
 * The index of runs: one entry in R2 for each run, from which the run's row in D1 can be made again. So a database that
 * was taken back to an earlier time finds the runs that were created since (src/backup/repair.ts).
 *
 * Invariants. The entry is written before the row, and deleted before it. So every run with a row has an entry, except
 * runs of releases without the index. An entry alone is not a run: the run's object decides.
 */
import type { Scope } from "../../contract/scope.ts";
import type { InlineEndpointRow, NewRun } from "../db/runs.ts";
import { runIndexKey } from "../kit/names.ts";

/** What D1 has of a run when it begins: its row, and the endpoints that came with it. Their keys are sealed. */
export interface RunIndexEntry {
  readonly run: NewRun;
  readonly endpoints: readonly InlineEndpointRow[];
}

export async function writeIndexEntry({ STORE }: Env, scope: Scope, entry: RunIndexEntry): Promise<void> {
  await STORE.put(runIndexKey(scope, entry.run.id), JSON.stringify(entry));
}

/** Null if the run has no entry. */
export async function readIndexEntry({ STORE }: Env, scope: Scope, runId: string): Promise<RunIndexEntry | null> {
  const stored = await STORE.get(runIndexKey(scope, runId));
  return stored === null ? null : await stored.json<RunIndexEntry>();
}

export async function deleteIndexEntry({ STORE }: Env, scope: Scope, runId: string): Promise<void> {
  await STORE.delete(runIndexKey(scope, runId));
}
