/** The basis of all methods of the client: the platform's address, and each kind of request. */
import type { Deleted } from "../contract/endpoint.ts";
import type { CallOptions, Page, PageQuery, PostOptions } from "./options.ts";
import { parsed, readJson } from "./request-error.ts";
import { type Call, type Read, Transport, type TransportOptions } from "./transport.ts";

export interface RowPage<T> {
  readonly rows: readonly T[];
  readonly headers: Headers;
  readonly next: string | null;
}

/** Await it for one page, or iterate over it for every object from that page on, page after page. */
export type PagePromise<T, P = Page<T>> = Promise<P> & AsyncIterable<T>;

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

  put<T>(path: string, body: unknown, options: CallOptions): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.json(path, { ...options, method: "PUT", headers, body: JSON.stringify(body) });
  }

  delete<T = Deleted>(path: string, options: CallOptions): Promise<T> {
    return this.json(path, { ...options, method: "DELETE" });
  }

  json<T>(path: string, call: Call): Promise<T> {
    return this.read(path, call, readJson<T>);
  }

  text(path: string, call: Call): Promise<string> {
    return this.read(path, call, (reply) => reply.text());
  }

  /** Sends a request and returns what `read` makes of the reply. */
  read<T>(path: string, call: Call, read: Read<T>): Promise<T> {
    return this.request(this.base + path, call, read);
  }

  /** A list whose next page is selected by the `last_id` of the previous page. */
  list<T, P extends Page<T> = Page<T>>(
    path: string,
    query: PageQuery<unknown>,
    options: CallOptions,
  ): PagePromise<T, P> {
    return this.pages(path, query, options, ({ has_more, last_id }) => {
      return has_more && last_id !== null ? { after: last_id } : null;
    });
  }

  /** `next`: the query fields that select the next page; null after the last one. */
  pages<T, P extends { readonly data: readonly T[] }>(
    path: string,
    query: object,
    options: CallOptions,
    next: (page: P) => object | null,
  ): PagePromise<T, P> {
    const ask = (more: object) => this.json<P>(path + search({ ...query, ...more }), options);
    const first = ask({});
    return Object.assign(first, {
      async *[Symbol.asyncIterator]() {
        for (let page = await first; ; ) {
          yield* page.data;
          const more = next(page);
          if (more === null) return;
          page = await ask(more);
        }
      },
    });
  }

  /**
   * The rows of every page from this one on. A page is read completely before its rows are given, so that it can be
   * read again.
   */
  async *rows<T>(path: string, options: CallOptions, onHeaders?: (headers: Headers) => void): AsyncGenerator<T> {
    for (let url: string | null = this.base + path; url !== null; ) {
      const page: RowPage<T> = await this.request(url, options, readRows<T>);
      onHeaders?.(page.headers);
      yield* page.rows;
      url = page.next === null ? null : withSearchOf(page.next, url);
    }
  }
}

export function posted(body: unknown, idempotencyKey?: string): Call {
  return { method: "POST", headers: headersOf("application/json", idempotencyKey), body: JSON.stringify(body) };
}

export function headersOf(contentType: string, idempotencyKey: string = crypto.randomUUID()) {
  return { "content-type": contentType, "idempotency-key": idempotencyKey };
}

async function readRows<T>(reply: Response): Promise<RowPage<T>> {
  // Not text(): workerd warns about content types that it does not recognise as text.
  const lines = new TextDecoder().decode(await reply.arrayBuffer()).split("\n");
  if (lines.pop() !== "") throw new TypeError("the page of rows is incomplete");
  return {
    rows: lines.map((line) => parsed<T>(line, reply)),
    headers: reply.headers,
    next: /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(reply.headers.get("link") ?? "")?.[1] ?? null,
  };
}

/** Only the link's query is used: behind a proxy its address may be wrong, and the key must not go elsewhere. */
export function withSearchOf(link: string, url: string): string {
  const next = new URL(url);
  next.search = new URL(link, url).search;
  return next.href;
}

/** `` pathTo`/runs/${id}/cancel` ``: each value is encoded, so that it stays one segment of the path. */
export function pathTo(texts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return String.raw({ raw: texts }, ...values.map(encodeURIComponent));
}

/** An empty filter means none. */
export function filtered<Q extends { readonly filter?: string | undefined }>(query: Q): Q {
  return { ...query, filter: query.filter || undefined };
}

/** `?a=1&metadata[branch]=main`; empty if there are no parameters. */
export function search(query: object): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => pairsOf(name, value));
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

function pairsOf(name: string, value: unknown): [string, string][] {
  if (value === undefined) return [];
  if (typeof value !== "object" || value === null) return [[name, String(value)]];
  return Object.entries(value).map(([key, inner]) => [`${name}[${key}]`, String(inner)]);
}
