/**
 * Deletes what no unfinished run uses. The list of runs in D1 may be behind the state of a run that has just ended. So
 * each run that seems to use it is asked, and if it has ended, its row is updated.
 */
import type { Scope } from "../../contract/scope.ts";
import { openDataset } from "../dataset/read.ts";
import { databaseOf } from "../db/database.ts";
import { deleteUnusedDataset } from "../db/datasets.ts";
import { updateRun } from "../db/runs.ts";
import { runObject, uploadKeys } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";

/** The result in D1: if nothing was deleted, the runs that D1 lists as unfinished. */
interface Attempt {
  readonly deleted: boolean;
  readonly usedBy: readonly string[];
}

/** Each attempt updates as many rows as it names runs. */
const ATTEMPTS = 4;
/** How many runs a refusal names; there may be many more. */
const RUNS_NAMED = 5;

/** Refuses with `conflict` and names unfinished runs. `deleted` is false if it was gone already. */
export async function deleteUnused(
  env: Env,
  scope: Scope,
  attempt: () => Promise<Attempt>,
): Promise<Result<{ deleted: boolean }>> {
  const subrequests = new Subrequests();
  for (let attempts = 1; ; attempts += 1) {
    const { deleted, usedBy } = await subrequests.fetch(attempt);
    if (deleted || usedBy.length === 0) return { ok: true, value: { deleted } };
    const ended = await subrequests.six(usedBy, (id) => hasEnded(env, scope, id, subrequests));
    const going = usedBy.filter((_, at) => ended[at] === false);
    if (going.length > 0) return inUse(going);
    if (attempts === ATTEMPTS) return inUse(usedBy);
  }
}

async function hasEnded(env: Env, scope: Scope, runId: string, subrequests: Subrequests): Promise<boolean> {
  const view = await subrequests.object(() => runObject(env, scope, runId).view());
  if (view === null || view.settled_at === null) return false;
  const { status, error, counts, report, settled_at: finished_at } = view;
  const changes = { status, error, counts, report, finished_at };
  await subrequests.fetch(() => updateRun(databaseOf(env), scope, runId, changes));
  return true;
}

function inUse(runs: readonly string[]): Result<never> {
  const named = runs.slice(0, RUNS_NAMED).join(", ");
  const others = runs.length > RUNS_NAMED ? " and others" : "";
  const message = `runs that have not ended use it: ${named}${others}; cancel them first, or wait`;
  return refuse("conflict", message, null);
}

/**
 * Refused while an unfinished run names it. The row in D1 is deleted first: a kill after that leaves objects that
 * nothing names. The other order would leave a dataset without its rows.
 */
export async function deleteDataset(env: Env, scope: Scope, idOrName: string): Promise<Result<{ id: string }>> {
  const found = await openDataset(env, scope, idOrName, "id");
  if (!found.ok) return found;
  const { id } = found.value;
  const done = await deleteUnused(env, scope, () => deleteUnusedDataset(databaseOf(env), scope, id));
  if (!done.ok) return done;
  await env.STORE.delete(Object.values(uploadKeys(scope, id)));
  return { ok: true, value: { id } };
}
