/** A proxy between the platform and an engine that forwards everything and rewrites the requests of completions. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export type Body = Readonly<Record<string, unknown>>;

export interface RewritingProxy {
  /** Without /v1. */
  readonly url: string;
  /** The number of completion requests whose body was changed. */
  readonly rewritten: number;
  /** Takes effect at the next request. */
  leadTo(engine: string, rewrite?: (body: Body) => Body): void;
  stop(): Promise<void>;
}

export async function startProxy(engine: string): Promise<RewritingProxy> {
  let [to, rewritten] = [engine, 0];
  let rewrite = (body: Body) => body;
  const server = createServer(async (request, response) => {
    const path = request.url ?? "/";
    let body = request.method === "POST" ? await text(request) : undefined;
    if (path === "/v1/chat/completions" && body !== undefined) {
      const sent = JSON.stringify(rewrite(JSON.parse(body)));
      if (sent !== JSON.stringify(JSON.parse(body))) rewritten += 1;
      body = sent;
    }
    const reply = await fetch(to + path, {
      method: request.method ?? "GET",
      headers: {
        "content-type": "application/json",
        authorization: request.headers.authorization ?? "",
      },
      ...(body !== undefined && { body }),
    });
    response.writeHead(reply.status, { "content-type": "application/json" });
    response.end(await reply.text());
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get rewritten() {
      return rewritten;
    },
    leadTo(engine, by = (body) => body) {
      [to, rewrite, rewritten] = [engine, by, 0];
    },
    stop: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
