/**
 * The local ceiling on live objects. workerd keeps 3 file descriptors per live object, for about 10 s after its last
 * use, and dies when they run out. Deployed there is no ceiling (0) and nothing here does anything. Locally all objects
 * share one isolate, so a module-level set is the truth: every active run dispatches up to an equal share, and finished
 * rollouts are retired at once.
 */
const activeRuns = new Set<string>();

/** How many rollouts this run may have running, whatever it asked for. */
export function liveShare(env: Env, runId: string): number {
  const ceiling = Number(env.LIVE_OBJECT_CEILING);
  if (ceiling === 0) return Number.POSITIVE_INFINITY;
  activeRuns.add(runId);
  return Math.max(1, Math.floor(ceiling / activeRuns.size));
}

export function leaveShare(runId: string): void {
  activeRuns.delete(runId);
}

/** True where an object should be taken out of memory as soon as it has nothing to do. */
export function retiresAtOnce(env: Env): boolean {
  return Number(env.LIVE_OBJECT_CEILING) > 0;
}
