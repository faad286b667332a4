/**
 * A proxy between a program and the platform, which calls a test at chosen moments: before it forwards a request, or
 * before it returns the reply. If the caller has died by then, the reply goes nowhere.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** The body of the request. */
  readonly body: string;
}

export interface Watcher {
  /** False: the request is not forwarded, and its caller gets no answer. */
  readonly asked?: (exchange: Exchange) => boolean | Promise<boolean>;
  /** False: the reply is not returned. */
  readonly replied?: (exchange: Exchange, status: number) => boolean | Promise<boolean>;
}

export class CutProxy {
  watcher: Watcher = {};
  readonly #server: Server;
  readonly #target: string;

  constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy());
    });
  }

  /** Its URL; it listens from the first call on. */
  async url(): Promise<string> {
    if (!this.#server.listening) {
      this.#server.listen(0, "127.0.0.1");
      await once(this.#server, "listening");
    }
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const { method = "GET", url: path = "/" } = request;
    const exchange = { method, path, body: Buffer.concat(parts).toString() };
    if ((await this.watcher.asked?.(exchange)) === false) return void response.destroy();
    const { authorization = "" } = request.headers;
    const init = method === "GET" ? {} : { method, body: exchange.body };
    const headers = { authorization, "content-type": "application/json" };
    const reply = await fetch(`${this.#target}${path}`, { ...init, headers });
    const body = Buffer.from(await reply.arrayBuffer());
    if ((await this.watcher.replied?.(exchange, reply.status)) === false) return void response.destroy();
    response.writeHead(reply.status).end(body);
  }
}
