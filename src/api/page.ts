/** Lists: a page of them as OpenAI's come, and the query that asks for one. The cursor is the id of the last object seen. */
import * as z from "zod";
import { wholeNumber } from "../contract/primitives.ts";
import type { Position } from "../db/page.ts";
import { Refusal } from "./errors.ts";

/** Of what a page comes after. */
export const IdCursor = z.string().regex(/^[a-z]+_[\w-]{1,100}$/, { error: "is not an id" });

export const PageQuery = z.strictObject({
  after: IdCursor.optional().describe("id of the last object of the page before"),
  limit: wholeNumber(1, 100).default(20),
  order: z.enum(["asc", "desc"]).default("desc").describe("by time of creation"),
});

export interface ListPage<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** What was read with a limit of one more than the page has room for. */
export function pageOf<T extends { id: string }>(read: readonly T[], limit: number): ListPage<T> {
  const data = read.slice(0, limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: read.length > limit,
  };
}

/** Where the page after the object `after` begins; null for the first page. */
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

/** The `Link` header of a page of lines: the same request, going on behind `after`. */
export function linkToNext(url: string, after: number | string): string {
  const next = new URL(url);
  next.searchParams.set("after", String(after));
  return `<${next.href}>; rel="next"`;
}
