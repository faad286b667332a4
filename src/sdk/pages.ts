/** Lists and rows page by page, and what is asked of them in a URL. */
import { parsed } from "./reply.ts";

export interface Page<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly first_id: string | null;
  /** The `after` of the next page. */
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export interface ListQuery {
  /** Id of the last object of the page before. */
  readonly after?: string | undefined;
  /** Objects a page: 1 to 100, default 20. */
  readonly limit?: number | undefined;
  /** By time of creation; default `desc`. */
  readonly order?: "asc" | "desc" | undefined;
}

export interface RowPage<T> {
  readonly rows: readonly T[];
  readonly headers: Headers;
  readonly next: string | null;
}

export async function readRows<T>(reply: Response): Promise<RowPage<T>> {
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

export async function* eachOf<Q extends ListQuery, T>(
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
