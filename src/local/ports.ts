/** Ports and open files: what this machine has left for a platform. */
import { execFileSync } from "node:child_process";
import { createServer } from "node:net";

export const DEFAULT_PORT = 8787;
const PORTS_TRIED = 100;

/** The "bad ports" of the Fetch standard: nothing that asks with `fetch` would reach a platform there. */
const REFUSED_BY_FETCH: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
]);

/** Whether browsers, Node and whatever else follows the Fetch standard refuse to connect to this port. */
export function isRefusedByFetch(port: number): boolean {
  return REFUSED_BY_FETCH.has(port);
}

/** The first free loopback port from `wanted` on that clients can reach. */
export async function freePort(wanted: number): Promise<number> {
  for (let port = wanted; port < Math.min(wanted + PORTS_TRIED, 65_536); port += 1) {
    if (!isRefusedByFetch(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port from ${wanted} on (${PORTS_TRIED} tried)`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error) => {
      if ("code" in error && (error.code === "EADDRINUSE" || error.code === "EACCES")) resolve(false);
      else reject(error);
    });
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

/** workerd keeps a database, its journal and its index open for each live object, and two sockets for a call of its. */
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

/** More than this nobody is likely to run at once on one machine. */
const MANY_OBJECTS = 1000;

/** What to say of a ceiling that a run can reach; null where none can. */
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
