/** What every method of the client is made of: the platform's address, and a request of each kind. */
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, Page, PageQuery, PostOptions } from "./options.ts";
import { parsed, readJson } from "./request-error.ts";
import { type Call, type Read, Transport, type TransportOptions } from "./transport.ts";

export interface RowPage<T> {
  readonly rows: readonly T[];
  readonly headers: Headers;
  readonly next: string | null;
}

export interface ClientOptions extends TransportOptions {
  /** The platform's address, without /v1. */
  readonly baseUrl: string;
}

export class Requests extends Transport {
  /** With /v1. */
  readonly base: string;

  constructor({ baseUrl, ...options }: ClientOptions) {
    super(options);
    this.base = `${baseUrl.replace(/\/+$/, "")}/v1`;
  }

  post<T>(path: string, body: unknown, { idempotencyKey, ...options }: PostOptions): Promise<T> {
    return this.json(path, { ...options, ...posted(body, idempotencyKey) });
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
    return this.read(path, call, readJson<T>);
  }

  /** What `read` makes of the reply. */
  read<T>(path: string, call: Call, read: Read<T>): Promise<T> {
    return this.request(this.base + path, call, read);
  }

  /** The rows of every page from this one on. A page is read whole before its rows are given: it can be read again. */
  async *rows<T>(path: string, options: CallOptions, onHeaders?: (headers: Headers) => void): AsyncGenerator<T> {
    for (let url: string | null = this.base + path; url !== null; ) {
      const page: RowPage<T> = await this.request(url, options, readRows<T>);
      onHeaders?.(page.headers);
      yield* page.rows;
      url = page.next === null ? null : withSearchOf(page.next, url);
    }
  }
}

/** A part of the client: methods that all ask through the same `Requests`. */
export class ClientPart {
  protected readonly requests: Requests;

  constructor(requests: Requests) {
    this.requests = requests;
  }
}

export function posted(body: unknown, idempotencyKey?: string): Call {
  return { method: "POST", headers: headersOf("application/json", idempotencyKey), body: JSON.stringify(body) };
}

export function headersOf(contentType: string, idempotencyKey: string = crypto.randomUUID()) {
  return { "content-type": contentType, "idempotency-key": idempotencyKey };
}

async function readRows<T>(reply: Response): Promise<RowPage<T>> {
  // Not text(): workerd warns of a content type it does not know to be text.
  const lines = new TextDecoder().decode(await reply.arrayBuffer()).split("\n");
  if (lines.pop() !== "") throw new TypeError("the page of rows was cut short");
  return {
    rows: lines.map((line) => parsed<T>(line, reply)),
    headers: reply.headers,
    next: /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(reply.headers.get("link") ?? "")?.[1] ?? null,
  };
}

/** Only the link's query counts: a platform behind a proxy may not know its own address, and the key goes to no other. */
export function withSearchOf(link: string, url: string): string {
  const next = new URL(url);
  next.search = new URL(link, url).search;
  return next.href;
}

export async function* eachOf<Q extends PageQuery, T>(
  query: Q,
  list: (query: Q) => Promise<Page<T>>,
): AsyncGenerator<T> {
  for (let after = query.after; ; ) {
    const page: Page<T> = await list({ ...query, after });
    yield* page.data;
    if (!page.has_more || page.last_id === null) return;
    after = page.last_id;
  }
}

/** `?a=1&metadata[branch]=main`; empty when nothing is asked. */
export function search(query: object): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => pairsOf(name, value));
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

function pairsOf(name: string, value: unknown): [string, string][] {
  if (value === undefined) return [];
  if (typeof value !== "object" || value === null) return [[name, String(value)]];
  return Object.entries(value).map(([key, inner]) => [`${name}[${key}]`, String(inner)]);
}
