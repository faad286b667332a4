/**
 * Deletes what no unfinished run uses any more. D1's list of runs lags behind a run that has just ended, and the run
 * itself does not: every run that stands in the way is asked, and the row of one that has ended is brought up to date.
 */
import type { Scope } from "../../contract/scope.ts";
import { openDataset } from "../dataset/read.ts";
import { deleteUnusedDataset } from "../db/datasets.ts";
import { updateRun } from "../db/runs.ts";
import { runObject, uploadKeys } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";

/** What D1 did: when nothing was deleted, runs that are not finished as far as it knows. */
interface Attempt {
  readonly deleted: boolean;
  readonly usedBy: readonly string[];
}

/** Each brings as many rows up to date as an attempt names runs. */
const ATTEMPTS = 4;
/** Runs a refusal names; there may be many more. */
const RUNS_NAMED = 5;

/** Refuses with `conflict`, naming runs that go on. Nothing deleted and nobody named: it was gone already. */
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
  await subrequests.fetch(() => updateRun(env.DB, scope, runId, changes));
  return true;
}

function inUse(runs: readonly string[]): Result<never> {
  const named = runs.slice(0, RUNS_NAMED).join(", ");
  const others = runs.length > RUNS_NAMED ? " and others" : "";
  const message = `runs that have not ended use it: ${named}${others}; cancel them first, or wait`;
  return refuse("conflict", message, null);
}

/**
 * Refused while a run that is not finished names it. The row in D1 goes first: a kill after that leaves objects that
 * nothing names, where the other order would leave a dataset whose rows are gone.
 */
export async function deleteDataset(env: Env, scope: Scope, idOrName: string): Promise<Result<{ id: string }>> {
  const found = await openDataset(env, scope, idOrName, "id");
  if (!found.ok) return found;
  const { id } = found.value;
  const done = await deleteUnused(env, scope, () => deleteUnusedDataset(env.DB, scope, id));
  if (!done.ok) return done;
  await env.STORE.delete(Object.values(uploadKeys(scope, id)));
  return { ok: true, value: { id } };
}
