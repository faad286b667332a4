/**
 * The local ceiling on live objects. workerd keeps 3 files open per live object, for about 10 s after its last use, and
 * two sockets for each call under way; it dies when they run out. Deployed there is no ceiling (0) and nothing here
 * does anything. Locally all objects share one isolate, so a module-level map is the truth: every active run dispatches
 * up to its share and never past what the others leave, and objects that have nothing to do are retired soon. Shares are
 * even between organisations first, and between the runs of one then. Up to six rollouts share an object, and each
 * counts for one all the same.
 */

import { fairShares } from "../kit/fair-shares.ts";
import { isLocal } from "../kit/storage-faults.ts";
import type { RunSpec } from "../messages/wire.ts";
import { findEnvironment } from "./environments.ts";

/** Objects of each run, a rollout with a database counted for what that keeps open, and whose run it is. */
const liveByRun = new Map<string, { readonly group: string; readonly objects: number }>();
type Owned = Pick<RunSpec, "run_id" | "scope">;
/** Its files are twice as many, and an index of the facets comes with them; its sockets are not. */
const WITH_DATABASE = 2;

/** How many objects a rollout of the run counts for. */
export function objectsEach({ environment: { id, version } }: Pick<RunSpec, "environment">): number {
  const needs = findEnvironment(`${id}@${version}`)?.needs ?? [];
  return needs.includes("sql") ? WITH_DATABASE : 1;
}

/** How many rollouts this run may have running, whatever it asked for: at least one, or it would wait for nothing. */
export function liveShare(env: Env, run: Owned, running: number, each = 1): number {
  const ceiling = Number(env.LIVE_OBJECT_CEILING);
  if (ceiling === 0) return Number.POSITIVE_INFINITY;
  const own = running * each;
  note(run, own);
  const live = [...liveByRun];
  const all = live.reduce((sum, [, { objects }]) => sum + objects, 0);
  const claims = live.map(([id, { group }]) => ({ id, group, wants: Number.POSITIVE_INFINITY }));
  const share = fairShares(claims, ceiling).get(run.run_id) ?? 0;
  return Math.max(1, Math.floor(Math.min(share, ceiling - (all - own)) / each));
}

/** Why a run has no more rollouts at once than these: the machine's limit, not the run's or its endpoint's. */
export function ceilingReason(env: Env, rollouts: number): string {
  const { LIVE_OBJECT_CEILING: ceiling } = env;
  return `this machine's limit on open files allows ${ceiling} live objects, but this run needs ${rollouts}: raise the limit (ulimit -n) and restart the platform`;
}

/** Notes how many a run has now; a run with none left, and none to come, counts no more. */
export function noteRunning(env: Env, run: Owned, running: number, settled: boolean, each = 1): void {
  if (Number(env.LIVE_OBJECT_CEILING) === 0) return;
  if (settled) liveByRun.delete(run.run_id);
  else note(run, running * each);
}

function note({ run_id, scope }: Owned, objects: number): void {
  liveByRun.set(run_id, { group: scope.orgId, objects });
}

/** True where an object should be taken out of memory soon after it has nothing to do any more. */
export function retiresAtOnce(env: Env): boolean {
  return isLocal(env);
}
