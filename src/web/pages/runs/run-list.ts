/** The filter and the order of the list of runs, and how runs that are read later are merged into it. Pure. */
import { RUN_KINDS, RUN_SORTS, RUN_STATUSES, type RunView } from "../../../contract/run.ts";
import type { RunQuery } from "../../../sdk/options.ts";
import type { Search } from "../../address.ts";

type Filter = Omit<RunQuery, "after" | "limit">;

/** The names in the URL that limit the list. */
export const LIMITING = ["search", "kind", "status", "environment", "model", "metadata"] as const;

/** The filter and the order from the URL; invalid values are ignored. */
export function runFilter(search: Search): Filter {
  const kind = RUN_KINDS.find((one) => one === search["kind"]);
  const status = RUN_STATUSES.find((one) => one === search["status"]);
  const { environment, model, search: text, metadata } = search;
  return {
    ...{ kind, status, environment: environment || undefined, model: model || undefined },
    ...{ search: text?.slice(0, 200) || undefined, metadata: pairOf(metadata) },
    ...orderOf(search["sort"]),
  };
}

/** `branch=main`. */
function pairOf(text: string | undefined): RunQuery["metadata"] {
  const at = text?.indexOf("=") ?? -1;
  return text === undefined || at < 1 ? undefined : { [text.slice(0, at)]: text.slice(at + 1) };
}

/** `reward`, or `-reward` for the highest first. The newest run first needs no name. */
function orderOf(text = "-created"): Pick<Filter, "sort" | "order"> {
  const isDown = text.startsWith("-");
  const sort = RUN_SORTS.find((one) => one === text.slice(isDown ? 1 : 0));
  if (sort === undefined || (sort === "created" && isDown)) return {};
  return { sort, order: isDown ? "desc" : "asc" };
}

/** Whether the list is in the order of time, newest first. */
export function isNewestFirst({ sort }: Filter): boolean {
  return sort === undefined;
}

/**
 * The pages as they were read, with the runs that were read since: each run once. Runs that are not on the pages come
 * first, if the list is in the order of time.
 */
export function withLatest(
  pages: readonly RunView[],
  latest: readonly RunView[],
  newestFirst = true,
): readonly RunView[] {
  const known = new Set(pages.map(({ id }) => id));
  const fresh = new Map(latest.map((run) => [run.id, run]));
  const added = latest.filter(({ id }) => !known.has(id)).sort((a, b) => b.created_at - a.created_at);
  const oldest = pages.at(-1)?.created_at ?? 0;
  const before = newestFirst ? added.filter(({ created_at }) => created_at >= oldest) : [];
  return [...before, ...pages.map((run) => fresh.get(run.id) ?? run)];
}
