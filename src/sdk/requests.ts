/** What every method of the client is made of: the platform's address, and a request of each kind. */
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { type RowPage, readRows, withSearchOf } from "./pages.ts";
import { readJson } from "./reply.ts";
import { type Call, Transport, type TransportOptions } from "./transport.ts";

export interface ClientOptions extends TransportOptions {
  /** The platform's address, without /v1. */
  readonly baseUrl: string;
}

export class Requests {
  /** With /v1. */
  readonly base: string;
  readonly transport: Transport;

  constructor({ baseUrl, ...options }: ClientOptions) {
    this.base = `${baseUrl.replace(/\/+$/, "")}/v1`;
    this.transport = new Transport(options);
  }

  post<T>(path: string, body: unknown, { idempotencyKey, ...options }: PostOptions): Promise<T> {
    const headers = headersOf("application/json", idempotencyKey);
    return this.json(path, { ...options, method: "POST", headers, body: JSON.stringify(body) });
  }

  patch<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.json(path, { ...options, method: "PATCH", headers, body: JSON.stringify(body) });
  }

  /** One whose reply was lost is sent again and may then answer `not_found`. */
  delete(path: string, options: CallOptions): Promise<Deleted> {
    return this.json(path, { ...options, method: "DELETE" });
  }

  json<T>(path: string, call: Call): Promise<T> {
    return this.transport.request(this.base + path, call, readJson<T>);
  }

  /** The rows of every page from this one on. A page is read whole before its rows are given: it can be read again. */
  async *rows<T>(path: string, options: CallOptions, onHeaders?: (headers: Headers) => void): AsyncGenerator<T> {
    for (let url: string | null = this.base + path; url !== null; ) {
      const page: RowPage<T> = await this.transport.request(url, options, readRows<T>);
      onHeaders?.(page.headers);
      yield* page.rows;
      url = page.next === null ? null : withSearchOf(page.next, url);
    }
  }
}

export function headersOf(contentType: string, idempotencyKey: string = crypto.randomUUID()) {
  return { "content-type": contentType, "idempotency-key": idempotencyKey };
}
