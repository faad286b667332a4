/**
 * Ports for tests that must name one before anybody listens on it. Each process has a block of its own: it holds the last
 * port of the block for as long as it lives, and every other one that wants the block takes the next. Blocks end below
 * the ports that systems give to whoever asks for any. What can listen on port 0 and say which one it got should.
 */
import { createServer } from "node:net";

const FIRST = 20_000;
const BLOCK = 50;
const BLOCKS = 250;

const block = await claimBlock();

/** The port of this process's block at that place, 0 to 48. */
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
