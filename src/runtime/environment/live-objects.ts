/**
 * The local ceiling on live objects. workerd keeps 3 files open per live object, for about 10 s after its last use, and
 * two sockets for each call under way; it dies when they run out. Deployed there is no ceiling (0) and nothing here
 * does anything. Locally all objects share one isolate, so a module-level map is the truth: every active run dispatches
 * up to an equal share and never past what the others leave, and objects that have nothing to do are retired soon. Up
 * to six rollouts share an object, and each counts for one all the same.
 */

import type { RunSpec } from "../contract/wire.ts";
import { isLocal } from "../kit/storage-faults.ts";
import { findEnvironment } from "./environments.ts";

/** Objects, a rollout with a database counted for what that keeps open. */
const liveByRun = new Map<string, number>();
/** Its files are twice as many, and an index of the facets comes with them; its sockets are not. */
const WITH_DATABASE = 2;

/** How many objects a rollout of the run counts for. */
export function objectsEach({ environment: { id, version } }: Pick<RunSpec, "environment">): number {
  const needs = findEnvironment(`${id}@${version}`)?.needs ?? [];
  return needs.includes("sql") ? WITH_DATABASE : 1;
}

/** How many rollouts this run may have running, whatever it asked for: at least one, or it would wait for nothing. */
export function liveShare(env: Env, runId: string, running: number, each = 1): number {
  const ceiling = Number(env.LIVE_OBJECT_CEILING);
  if (ceiling === 0) return Number.POSITIVE_INFINITY;
  const own = running * each;
  liveByRun.set(runId, own);
  const all = [...liveByRun.values()].reduce((sum, count) => sum + count, 0);
  const share = Math.floor(ceiling / liveByRun.size);
  return Math.max(1, Math.floor(Math.min(share, ceiling - (all - own)) / each));
}

/** Why a run has no more rollouts at once than these: the machine's limit, not the run's or its endpoint's. */
export function ceilingReason(env: Env, rollouts: number): string {
  const { LIVE_OBJECT_CEILING: ceiling } = env;
  return `the limit on open files of this machine allows ${ceiling} live objects, and this run ${rollouts} rollouts at once: raise it (ulimit -n) and start the platform again`;
}

/** Notes how many a run has now; a run with none left, and none to come, counts no more. */
export function noteRunning(env: Env, runId: string, running: number, settled: boolean, each = 1): void {
  if (Number(env.LIVE_OBJECT_CEILING) === 0) return;
  if (settled) liveByRun.delete(runId);
  else liveByRun.set(runId, running * each);
}

/** True where an object should be taken out of memory soon after it has nothing to do any more. */
export function retiresAtOnce(env: Env): boolean {
  return isLocal(env);
}
