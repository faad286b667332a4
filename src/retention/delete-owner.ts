/**
 * Deletes a whole project or a whole organisation. Access ends when the deletion starts. A project's runs are deleted
 * first, each by a child job of this one. An organisation's projects are deleted first, each by its own object. Then
 * files, rows, and finally the row of the project or organisation itself are deleted.
 */
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { noteSettingsChanged } from "../kernel/kit/account-hooks.ts";
import { accountObject, ownerFolder } from "../kernel/kit/names.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { closeOrganization, forgetOrganization, objectsOfProject, stopProject } from "../kernel/kit/slice-hooks.ts";
import { filesSlice } from "./files.ts";
import { ENDED, goOn, type Outcome, type Slice, waitUntil } from "./job-slice.ts";
import { type Job, plus } from "./jobs.ts";
import {
  beginProjectDeletion,
  countRowsOfOrganization,
  countRowsOfProject,
  deleteRowsOfOrganization,
  deleteRowsOfProject,
  projectsOf,
  runsOf,
} from "./owner-queries.ts";
import { projectObject } from "./rpc.ts";

/** How many run jobs, projects, and objects of slices are worked on at the same time. */
const RUNS_AT_ONCE = 100;
const PROJECTS_AT_ONCE = 20;
const OBJECTS_AT_ONCE = 100;
/** A child job that ends wakes its parent job. This is the interval for everything else. */
const LOOK_MS = 10_000;

export async function projectSlice(slice: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const { env, subrequests } = slice;
  switch (job.step) {
    case "files":
      return await filesSlice(slice, job, ownerFolder(scope), "rows");
    case "rows": {
      if (!job.counted) {
        const freeing = await freeObjects(slice, scope, job);
        if (freeing !== null) return freeing;
        const rows = await subrequests.fetch(() => countRowsOfProject(databaseOf(env), scope));
        return goOn({ ...job, counted: true, counts: plus(job.counts, { rows, projects: 1 }) });
      }
      return await deleteRows(slice, scope, job);
    }
    default: {
      const runs = await subrequests.fetch(() => runsOf(databaseOf(env), scope, RUNS_AT_ONCE));
      for (const id of runs) slice.jobs.add({ id, kind: "run", target_id: id }, job.id, slice.now);
      const freed = await stopProject(env, scope, subrequests);
      if (freed > 0) return goOn({ ...job, counts: plus(job.counts, { rows: freed, objects: freed }) });
      const waits = runs.length > 0 || slice.jobs.others(job.id) > 0;
      return waits ? waitUntil(slice.now + LOOK_MS) : goOn({ ...job, step: "files" });
    }
  }
}

async function deleteRows({ env, subrequests }: Slice, scope: Scope, job: Job): Promise<Outcome> {
  const all = await subrequests.fetch(() => deleteRowsOfProject(databaseOf(env), scope, LIMITS.sliceRows));
  if (!all) return goOn(job);
  // Isolates may keep its endpoints and secrets.
  await subrequests.object(() => noteSettingsChanged(env, scope.orgId));
  return { ...ENDED, counts: job.counts };
}

/** Frees the objects of slices before rows are deleted, so that none sends anything later. Null: all are freed. */
async function freeObjects({ env, subrequests, now }: Slice, scope: Scope, job: Job): Promise<Outcome | null> {
  const page = { from: job.freed, limit: OBJECTS_AT_ONCE };
  const next = await objectsOfProject(env, scope, page, subrequests);
  const freed = await subrequests.objectAll(next, (free) => free());
  if (freed.includes(false)) return waitUntil(now + LOOK_MS);
  return next.length === 0 ? null : goOn({ ...job, freed: job.freed + next.length });
}

export async function organizationSlice(slice: Slice, orgId: string, job: Job): Promise<Outcome> {
  const { env, subrequests } = slice;
  switch (job.step) {
    case "books": {
      const said = await closeOrganization(env, orgId, subrequests);
      return goOn({ ...job, counts: { ...job.counts, ...said }, step: "account" });
    }
    case "account": {
      // Before its files, because the object archives entries itself.
      const gone = await subrequests.object(() => accountObject(env, orgId).forget());
      return gone ? goOn({ ...job, step: "files" }) : waitUntil(slice.now + 1000);
    }
    case "files":
      return await filesSlice(slice, job, ownerFolder({ orgId, projectId: null }), "rows");
    case "rows": {
      if (!job.counted) {
        const { rows, projects } = await subrequests.fetch(() =>
          countRowsOfOrganization(databaseOf(env), orgId, job.id),
        );
        const counts = projects.reduce(plus, plus(job.counts, { rows, objects: 1 }));
        return goOn({ ...job, counted: true, counts });
      }
      await forgetOrganization(env, orgId, subrequests);
      await subrequests.fetch(() => deleteRowsOfOrganization(databaseOf(env), orgId));
      return { ...ENDED, counts: job.counts };
    }
    default:
      return await deleteProjects(slice, orgId, job);
  }
}

async function deleteProjects(slice: Slice, orgId: string, job: Job): Promise<Outcome> {
  const { env, subrequests, now } = slice;
  const projects = await subrequests.fetch(() => projectsOf(databaseOf(env), orgId, PROJECTS_AT_ONCE));
  for (const projectId of projects) {
    const made = { id: mintId("del", minting(env, now)), requested_by: job.id, created_at: now };
    const begun = await subrequests.fetch(() => beginProjectDeletion(databaseOf(env), orgId, projectId, made));
    if (begun === null || begun.state === "done") continue;
    const owner = { orgId, projectId };
    const order = { id: begun.id, kind: begun.kind, target_id: projectId };
    await subrequests.object(() => projectObject(env, owner).deleteAll(owner, order));
  }
  return projects.length > 0 ? waitUntil(now + LOOK_MS) : goOn({ ...job, step: "books" });
}
