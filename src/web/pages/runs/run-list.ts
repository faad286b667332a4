/** The filter of the list of runs, and how runs that are read later are merged into the list. Pure. */
import { RUN_KINDS, RUN_STATUSES, type RunView } from "../../../contract/run.ts";
import type { RunQuery } from "../../../sdk/options.ts";
import type { Search } from "../../address.ts";

/** The filter from the URL; invalid values are ignored. */
export function runFilter(search: Search): Pick<RunQuery, "kind" | "status" | "environment"> {
  const kind = RUN_KINDS.find((one) => one === search["kind"]);
  const status = RUN_STATUSES.find((one) => one === search["status"]);
  return { kind, status, environment: search["environment"] || undefined };
}

/** The pages as they were read, merged with runs that were read since: each run once, newest first. */
export function withLatest(pages: readonly RunView[], latest: readonly RunView[]): readonly RunView[] {
  const known = new Set(pages.map(({ id }) => id));
  const fresh = new Map(latest.map((run) => [run.id, run]));
  const added = latest.filter(({ id }) => !known.has(id)).sort((a, b) => b.created_at - a.created_at);
  const oldest = pages.at(-1)?.created_at ?? 0;
  const before = added.filter(({ created_at }) => created_at >= oldest);
  return [...before, ...pages.map((run) => fresh.get(run.id) ?? run)];
}
