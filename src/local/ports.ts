/** The ports of a local platform: for its clients the first port that is free and that they can reach. */
import { createServer } from "node:net";

export const DEFAULT_PORT = 8787;
const PORTS_TRIED = 100;

/** The "bad ports" of the Fetch standard: a client that uses `fetch` could not reach a platform there. */
const REFUSED_BY_FETCH: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
]);

/** Whether browsers, Node and other clients of the Fetch standard refuse to connect to this port. */
export function isRefusedByFetch(port: number): boolean {
  return REFUSED_BY_FETCH.has(port);
}

/** The first free loopback port, starting from `wanted`, that clients can reach. */
export async function freePort(wanted: number): Promise<number> {
  for (let port = wanted; port < Math.min(wanted + PORTS_TRIED, 65_536); port += 1) {
    if (!isRefusedByFetch(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port from ${wanted} up (tried ${PORTS_TRIED})`);
}

/** A free loopback port that the system chooses, for a listener whose port clients need not know. */
export function unusedPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = Object(probe.address());
      probe.close(() => resolve(port));
    });
  });
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
