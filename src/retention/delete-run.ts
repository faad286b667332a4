/**
 * Deletes a run, slice by slice. Rollouts in flight are cancelled first. When nothing of the run can be in flight any
 * more, its shards are freed, then its files in R2, its entry in the index of runs, its rows in D1, and its run object
 * last.
 *
 * Invariants. Every step may be repeated. While the run has an entry in the index, its object exists and is closed, so
 * the entry does not bring the run back. Evals of a training run are deleted with it, before its rows.
 */
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { countRowsOfRun, deleteRowsOfRun } from "../kernel/db/deleted-rows.ts";
import { rolloutShard, runFolder, runIndexKey, runObject, trainerObject } from "../kernel/kit/names.ts";
import { evalsOf, hideRun, kindOfRun } from "./deletion-queries.ts";
import { filesSlice } from "./files.ts";
import { ENDED, goOn, type Outcome, type Slice, waitUntil } from "./job-slice.ts";
import { type Job, plus } from "./jobs.ts";

/** How often to check whether the run has ended: the interval doubles each time. */
const LOOK_MS = 500;
const LONGEST_LOOK_MS = 30_000;
/** How long to wait for an object that is busy or owes a report. */
const BUSY_MS = 5000;
/** A child job wakes its parent when it ends; this covers a kill in between. */
const CHILDREN_MS = 60_000;

export async function runSlice(slice: Slice, scope: Scope, job: Job): Promise<Outcome> {
  switch (job.step) {
    case "objects":
      return await freeObjects(slice, scope, job);
    case "files":
      return await filesSlice(slice, job, runFolder(scope, job.target_id), "rows");
    case "rows":
      return await deleteRows(slice, scope, job);
    case "object":
      return await freeRun(slice, scope, job);
    default:
      return await close(slice, scope, job);
  }
}

/** Hides the run from readers and waits for its end. */
async function close(slice: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const { env, subrequests, now } = slice;
  const { target_id: runId } = job;
  if (job.parent !== null) await subrequests.fetch(() => hideRun(databaseOf(env), scope, runId, now));
  const { quiet_at, hosts: shards } = await subrequests.object(() => runObject(env, scope, runId).close());
  const trains = (await subrequests.fetch(() => kindOfRun(databaseOf(env), scope, runId))) === "training";
  if (trains) {
    await subrequests.object(() => trainerObject(env, scope, runId).free());
    const evals = await subrequests.fetch(() => evalsOf(databaseOf(env), scope, runId, LIMITS.sliceObjects));
    for (const id of evals) slice.jobs.add({ id, kind: "run", target_id: id }, job.id, now);
  }
  if (quiet_at === null) return waitUntil(now + Math.min(LONGEST_LOOK_MS, LOOK_MS * 2 ** job.tries));
  if (quiet_at > now) return waitUntil(quiet_at);
  if (slice.jobs.children(job.id) > 0) return waitUntil(now + CHILDREN_MS);
  const counts = trains ? plus(job.counts, { objects: 1 }) : job.counts;
  return goOn({ ...job, step: "objects", hosts: shards, counts });
}

async function freeObjects({ env, subrequests, now }: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const count = Math.min(LIMITS.sliceObjects, job.hosts - job.freed);
  const next = Array.from({ length: count }, (_, index) => job.freed + 1 + index);
  const done = await subrequests.objectAll(next, (shard) => rolloutShard(env, scope, job.target_id, shard).free());
  if (done.includes(false)) return waitUntil(now + BUSY_MS);
  const freed = job.freed + count;
  const step = freed < job.hosts ? "objects" : "files";
  return goOn({ ...job, step, freed, counts: plus(job.counts, { objects: count }) });
}

async function deleteRows({ env, subrequests }: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const { target_id: runId } = job;
  if (!job.counted) {
    const rows = await subrequests.fetch(() => countRowsOfRun(databaseOf(env), scope, runId));
    return goOn({ ...job, counted: true, counts: plus(job.counts, { rows }) });
  }
  await subrequests.fetch(() => env.STORE.delete(runIndexKey(scope, runId)));
  await subrequests.fetch(() => deleteRowsOfRun(databaseOf(env), scope, runId));
  return goOn({ ...job, step: "object" });
}

async function freeRun({ env, subrequests, now }: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const freed = await subrequests.object(() => runObject(env, scope, job.target_id).free());
  return freed ? { ...ENDED, counts: plus(job.counts, { objects: 1, runs: 1 }) } : waitUntil(now + BUSY_MS);
}
