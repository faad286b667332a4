/**
 * Serves the shop (mcp-shop.ts) on a port of loopback, and converts Node's requests to web requests and back. At a URL
 * that ends in `?open` it leaves each event stream open after the answer, and pings the client before it answers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpShop } from "./mcp-shop.ts";

export interface McpLoopback {
  readonly url: string;
  stop(): Promise<void>;
}

/** `open` is called at the first request. */
export async function startMcpShop(open: () => Promise<McpShop>): Promise<McpLoopback> {
  let shop: Promise<McpShop> | undefined;
  const server = createServer(async (incoming, outgoing) => {
    shop ??= open();
    const { fetch } = await shop;
    await send(await fetch(await requestOf(incoming)), outgoing, incoming.url?.endsWith("?open") ?? false);
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

const PING = `: hello\r\n\r\nevent: message\r\ndata: ${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "ping" })}\r\n\r\n`;

async function send(response: Response, outgoing: ServerResponse, open: boolean): Promise<void> {
  const isStream = response.headers.get("content-type") === "text/event-stream";
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (open && isStream) outgoing.write(PING);
  for await (const chunk of response.body ?? []) outgoing.write(chunk);
  if (!open || !isStream) outgoing.end();
}
