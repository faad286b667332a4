/** How many objects of a local platform may be alive at once, by this machine's limit on open files. */
import { execFileSync } from "node:child_process";

/**
 * workerd keeps three files open for a live object (database, journal, index), and two sockets while it makes a call.
 */
const FILES_PER_OBJECT = 5;
/** For D1, R2, queues, workerd itself, and objects that are read or freed in addition to those that play. */
const FILES_RESERVED = 384;
/** With fewer objects nothing would run; it is better to try anyway. */
const LEAST_OBJECTS = 16;

/** The quota of live objects for this limit of open files; 0 = no quota. */
export function liveObjectQuota(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return 0;
  return Math.max(LEAST_OBJECTS, Math.floor((openFiles - FILES_RESERVED) / FILES_PER_OBJECT));
}

/** A quota that is unlikely to be reached on one machine. */
const MANY_OBJECTS = 1000;

/** The message at boot about a quota that a run can reach, else null. A rollout with a SQL database counts twice. */
export function quotaText(openFiles: number): string | null {
  const quota = liveObjectQuota(openFiles);
  if (quota === 0 || quota >= MANY_OBJECTS) return null;
  return `At most ${quota} rollouts run at once here, half as many with databases: a process may have ${openFiles} open files (ulimit -n).`;
}

/** The limit for a child of this process: Node raises its own limit at start, and children inherit that. */
export function openFileLimit(): number {
  const answer = execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }).trim();
  return answer === "unlimited" ? Number.POSITIVE_INFINITY : Number(answer);
}
