/** Pages of lists, in the format of OpenAI's lists, and their query. The cursor is the id of the last object seen. */
import * as z from "zod";
import { PageLimit } from "../../contract/primitives.ts";
import type { Scope } from "../../contract/scope.ts";
import { type Database, databaseOf } from "../db/database.ts";
import type { Position, Page as StoredPage } from "../db/page.ts";
import { readQuery } from "./answer.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";

/** The id after which a page begins. */
export const IdCursor = z.string().regex(/^[a-z]+_[\w-]{1,100}$/, { error: "is not an id" });

export const PageQuery = z.strictObject({
  after: IdCursor.optional().describe("id of the last object of the previous page"),
  limit: PageLimit,
  order: z.enum(["asc", "desc"]).default("desc").describe("by creation time"),
});

/** One page of stored rows, by the query; `find` returns the row after which the page begins. */
export async function listReply<Row, View extends { id: string }>(
  context: ApiContext,
  what: string,
  find: (database: Database, scope: Scope, id: string) => Promise<Position | null>,
  list: (database: Database, scope: Scope, page: StoredPage) => Promise<Row[]>,
  viewOf: (row: Row) => View,
): Promise<Response> {
  const [database, scope] = [databaseOf(context.env), context.var.scope];
  const pages = {
    find: (id: string) => find(database, scope, id),
    list: (page: StoredPage) => list(database, scope, page),
  };
  return await pageReply(context, what, pages, viewOf);
}

/** The same for rows that do not belong to a project. */
export async function pageReply<Row, View extends { id: string }>(
  context: ApiContext,
  what: string,
  {
    find,
    list,
  }: {
    readonly find: (id: string) => Promise<Position | null>;
    readonly list: (page: StoredPage) => Promise<Row[]>;
  },
  viewOf: (row: Row) => View,
): Promise<Response> {
  const { after, limit, order } = readQuery(context, PageQuery);
  const position = await positionOf(after, what, find);
  const rows = await list({ after: position, limit: limit + 1, order });
  return context.json(pageOf(rows.map(viewOf), limit));
}

/** The page, from rows that were read with a limit of one more than the page's. */
export function pageOf<T extends { id: string }>(read: readonly T[], limit: number) {
  const data = read.slice(0, limit);
  const [first_id = null, last_id = null] = [data[0]?.id, data.at(-1)?.id];
  return { object: "list", data, first_id, last_id, has_more: read.length > limit } as const;
}

/** The position of the object `after`; null for the first page. */
export async function positionOf(
  after: string | undefined,
  what: string,
  find: (id: string) => Promise<Position | null>,
): Promise<Position | null> {
  if (after === undefined) return null;
  const position = await find(after);
  if (position !== null) return position;
  const message = `after: is not the id of ${what}`;
  throw new Refusal({ code: "invalid_request", message, param: "after" });
}

/** The `Link` header of a page of lines: the same request, continued after `after`. */
export function linkToNext(url: string, after: number | string): string {
  const next = new URL(url);
  next.searchParams.set("after", String(after));
  return `<${next.href}>; rel="next"`;
}
