/** How many objects a local platform may have alive at once, by the limit on open files of this machine. */
import { execFileSync } from "node:child_process";

/**
 * workerd keeps three files open for a live object (database, journal, index), and two sockets while it makes a call.
 */
const FILES_PER_OBJECT = 5;
/** For D1, R2, queues, workerd itself, and objects that are read or freed beside those that play. */
const FILES_RESERVED = 384;
/** Below this nothing would run at all; better to try than to stand still. */
const LEAST_OBJECTS = 16;

/** How many objects may live at once under this limit of open files; 0 = no ceiling. */
export function liveObjectCeiling(openFiles: number): number {
  if (!Number.isFinite(openFiles)) return 0;
  return Math.max(LEAST_OBJECTS, Math.floor((openFiles - FILES_RESERVED) / FILES_PER_OBJECT));
}

/** A ceiling that nobody is likely to reach on one machine. */
const MANY_OBJECTS = 1000;

/**
 * What the boot says of a ceiling that a run can reach; null where none can. A rollout counts for one object, and for
 * two where its environment has a SQL database.
 */
export function ceilingText(openFiles: number): string | null {
  const ceiling = liveObjectCeiling(openFiles);
  if (ceiling === 0 || ceiling >= MANY_OBJECTS) return null;
  return `At most ${ceiling} rollouts run at once here, half as many with databases: a process may have ${openFiles} open files (ulimit -n).`;
}

/** The limit a child of this process gets (Node raises its own at start, and children inherit that). */
export function openFileLimit(): number {
  const answer = execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }).trim();
  return answer === "unlimited" ? Number.POSITIVE_INFINITY : Number(answer);
}
