/**
 * The local limit on live objects. workerd keeps 3 files open for each live object, until about 10 s after its last
 * use, and two sockets for each call in progress; it dies if they run out. In production there is no limit (0) and this
 * file does nothing. Locally all objects share one isolate, so a module-level map is accurate: every active run
 * dispatches up to its share and never more than the others leave, and idle objects are evicted soon. Shares are equal
 * between organisations first, then between the runs of one. Up to six rollouts share an object, but each counts as
 * one.
 */

import { fairQuotas } from "../kit/fair-quotas.ts";
import { isLocal } from "../kit/storage-faults.ts";
import type { RunSpec } from "../messages/wire.ts";
import { findEnvironment } from "./environments.ts";

/** Objects of each run, and its organisation. A rollout with a database counts for the files that it keeps open. */
const liveByRun = new Map<string, { readonly group: string; readonly objects: number }>();
type Owned = Pick<RunSpec, "run_id" | "scope">;
/** It has twice as many files and an index of the facets, but not twice the sockets. */
const WITH_DATABASE = 2;

/** How many objects a rollout of the run counts as. */
export function objectsEach(spec: Pick<RunSpec, "environment" | "needs">): number {
  return hasDatabase(spec) ? WITH_DATABASE : 1;
}

/** Whether each rollout of the run has a database of its own. */
export function hasDatabase({ environment, needs }: Pick<RunSpec, "environment" | "needs">): boolean {
  const { id, version } = environment;
  return needs?.includes("sql") ?? findEnvironment(`${id}@${version}`)?.code.needs.includes("sql") ?? false;
}

/** How many rollouts this run may have running: at least one, because otherwise it would never continue. */
export function liveQuota(env: Env, run: Owned, running: number, each = 1): number {
  const quota = Number(env.LIVE_OBJECT_CEILING);
  if (quota === 0) return Number.POSITIVE_INFINITY;
  const own = running * each;
  note(run, own);
  const live = [...liveByRun];
  const all = live.reduce((sum, [, { objects }]) => sum + objects, 0);
  const claims = live.map(([id, { group }]) => ({ id, group, wants: Number.POSITIVE_INFINITY }));
  const fairQuota = fairQuotas(claims, quota).get(run.run_id) ?? 0;
  return Math.max(1, Math.floor(Math.min(fairQuota, quota - (all - own)) / each));
}

/** Why a run cannot have more rollouts at once: the machine's limit, not the run's or its endpoint's. */
export function quotaReason(env: Env, rollouts: number): string {
  const { LIVE_OBJECT_CEILING: quota } = env;
  return `this machine's limit on open files allows ${quota} live objects, but this run needs ${rollouts}: raise the limit (ulimit -n) and restart the platform`;
}

/** Notes how many a run has now. A run that has ended no longer counts. */
export function noteRunning(env: Env, run: Owned, running: number, settled: boolean, each = 1): void {
  if (Number(env.LIVE_OBJECT_CEILING) === 0) return;
  if (settled) liveByRun.delete(run.run_id);
  else note(run, running * each);
}

function note({ run_id, scope }: Owned, objects: number): void {
  liveByRun.set(run_id, { group: scope.orgId, objects });
}

/** True if an idle object should be evicted from memory soon. */
export function retiresAtOnce(env: Env): boolean {
  return isLocal(env);
}
