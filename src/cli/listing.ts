/** A list read from the platform, printed as a table, or as the API's own envelope with --json. */
import type { Page } from "../sdk/client.ts";
import { columns } from "./terminal/columns.ts";
import { safeLine } from "./terminal/safe-text.ts";

/** At most `limit` of what comes. `has_more` says whether there was more. */
export async function gather<T extends { readonly id: string }>(
  items: AsyncIterable<T>,
  limit = Number.POSITIVE_INFINITY,
): Promise<Page<T>> {
  const data: T[] = [];
  let more = false;
  for await (const item of items) {
    more = data.length >= limit;
    if (more) break;
    data.push(item);
  }
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: more,
  };
}

interface Listing<T> {
  readonly header: readonly string[];
  readonly rowOf: (item: T) => readonly string[];
  /** What is said of an empty list: how to get something into it. */
  readonly none: string;
  /** Columns there are. */
  readonly room: number;
}

export function listText<T>(items: readonly T[], { header, rowOf, none, room }: Listing<T>): string {
  if (items.length === 0) return none;
  const rows = items.map((item) => rowOf(item).map(safeLine));
  return columns(header, rows, room);
}
