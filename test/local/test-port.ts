/**
 * Ports for tests that must name a port before anything listens on it. Each process has its own block: it holds the
 * block's last port as long as it lives, and other processes that want the block take the next one. Blocks are below
 * the ports that systems give out. A server that can listen on port 0 and report its port should do that.
 */
import { createServer } from "node:net";

const FIRST = 20_000;
const BLOCK = 50;
const BLOCKS = 250;

const block = await claimBlock();

/** The port of this process's block at that offset, 0 to 48. */
export function testPort(offset: number): number {
  return block + offset;
}

async function claimBlock(): Promise<number> {
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const first = FIRST + ((process.pid + tried) % BLOCKS) * BLOCK;
    if (await hold(first + BLOCK - 1)) return first;
  }
  throw new Error(`every block of ports from ${FIRST} on is another process's`);
}

function hold(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => {
      if ("code" in error && error.code === "EADDRINUSE") resolve(false);
      else reject(error);
    });
    server.listen(port, "127.0.0.1", () => resolve(true)).unref();
  });
}
