/** The shop (mcp-shop.ts) on a port of loopback: node's requests become web requests and back. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpShop } from "./mcp-shop.ts";

export interface McpLoopback {
  readonly url: string;
  stop(): Promise<void>;
}

/** `open` is asked at the first request. */
export async function startMcpShop(open: () => Promise<McpShop>): Promise<McpLoopback> {
  let shop: Promise<McpShop> | undefined;
  const server = createServer(async (incoming, outgoing) => {
    shop ??= open();
    await send(await (await shop).fetch(await requestOf(incoming)), outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}/mcp`, stop };
}

async function requestOf(incoming: IncomingMessage): Promise<Request> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { method = "GET" } = incoming;
  const url = `http://${headers.get("host")}${incoming.url}`;
  const body = method === "POST" ? Buffer.concat(chunks) : null;
  return new Request(url, { method, headers, body });
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  for await (const chunk of response.body ?? []) outgoing.write(chunk);
  outgoing.end();
}
