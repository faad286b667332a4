/**
 * A server outside of Cloudflare for `npm run test:cloud -- --peer URL`: it is silent, or sends a byte every so often.
 * Run it where the internet reaches it: `node test/cloud/account/peer.ts 8080`.
 */
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const MOST_S = 400;

export function startPeer(port: number) {
  const server = createServer(async ({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://peer");
    const seconds = Math.min(Number(searchParams.get("s")), MOST_S);
    response.on("error", () => response.destroy());
    if (pathname === "/now") return response.end("now");
    if (pathname === "/silent") {
      await sleep(seconds * 1000);
      return response.end("answered");
    }
    if (pathname !== "/stream") return response.writeHead(404).end();
    const everyMs = Math.max(Number(searchParams.get("every")) * 1000, 10);
    for (const until = Date.now() + seconds * 1000; !response.destroyed; await sleep(everyMs)) {
      response.write(".");
      if (Date.now() >= until) return response.end();
    }
    return undefined;
  });
  return server.listen(port);
}

if (import.meta.main) startPeer(Number(process.argv[2] ?? 8080));
