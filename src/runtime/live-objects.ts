/**
 * The local ceiling on live objects. workerd keeps 3 file descriptors per live object, for about 10 s after its last
 * use, and dies when they run out. Deployed there is no ceiling (0) and nothing here does anything. Locally all objects
 * share one isolate, so a module-level map is the truth: every active run dispatches up to an equal share and never past
 * what the others leave, and finished rollouts are retired at once.
 */
const runningByRun = new Map<string, number>();

/** How many rollouts this run may have running, whatever it asked for: at least one, or it would wait for nothing. */
export function liveShare(env: Env, runId: string, running: number): number {
  const ceiling = Number(env.LIVE_OBJECT_CEILING);
  if (ceiling === 0) return Number.POSITIVE_INFINITY;
  runningByRun.set(runId, running);
  const all = [...runningByRun.values()].reduce((sum, count) => sum + count, 0);
  const share = Math.floor(ceiling / runningByRun.size);
  return Math.max(1, Math.min(share, ceiling - (all - running)));
}

/** Notes how many a run has now; a run with none left, and none to come, counts no more. */
export function noteRunning(env: Env, runId: string, running: number, settled: boolean): void {
  if (Number(env.LIVE_OBJECT_CEILING) === 0) return;
  if (settled) runningByRun.delete(runId);
  else runningByRun.set(runId, running);
}

/** True where an object should be taken out of memory as soon as it has nothing to do. */
export function retiresAtOnce(env: Env): boolean {
  return Number(env.LIVE_OBJECT_CEILING) > 0;
}
