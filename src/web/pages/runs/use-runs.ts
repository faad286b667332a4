/**
 * The list of runs, kept current. Pages are read as the reader reaches them. While any listed run is running, the first
 * page and the running runs are read again every few seconds: two requests, however long the list is.
 */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { RunView } from "../../../contract/run.ts";
import type { RunQuery } from "../../../sdk/options.ts";
import type { Search } from "../../address.ts";
import { api } from "../../client.ts";
import { hasEnded } from "../run/progress.ts";
import { isNewestFirst, runFilter, withLatest } from "./run-list.ts";

const PAGE = 50;
const BUSY_MS = 3000;
const IDLE_MS = 15_000;

export function useRuns(search: Search) {
  const filter = runFilter(search);
  const pages = useInfiniteQuery({
    queryKey: ["runs", filter],
    queryFn: ({ pageParam, signal }) => api.runs.list({ ...filter, limit: PAGE, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  });
  const read = useMemo(() => pages.data?.pages.flatMap((page) => page.data) ?? [], [pages.data]);
  const { data: latest = NONE } = useQuery({
    queryKey: ["runs", filter, "latest"],
    queryFn: ({ signal }) => latestRuns(filter, signal),
    enabled: pages.data !== undefined,
    refetchInterval: ({ state }) => ((state.data ?? NONE).some((run) => !hasEnded(run)) ? BUSY_MS : IDLE_MS),
  });
  const newestFirst = isNewestFirst(filter);
  const rows = useMemo(() => withLatest(read, latest, newestFirst), [read, latest, newestFirst]);
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = pages;
  // A page that failed is read again only when the reader asks for it.
  const more = useCallback(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError) fetchNextPage().catch(reportError);
  }, [hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);
  const { error } = pages;
  const retry = isFetchNextPageError ? fetchNextPage : pages.refetch;
  return { rows, more, hasMore: hasNextPage, error, retry, isLoading: pages.data === undefined };
}

const NONE: readonly RunView[] = [];

async function latestRuns(filter: RunQuery, signal: AbortSignal): Promise<readonly RunView[]> {
  const asked: RunQuery[] = [{ ...filter, limit: PAGE }];
  if (filter.status === undefined) asked.push({ ...filter, status: "running", limit: PAGE });
  const answers = await Promise.all(asked.map((query) => api.runs.list(query, { signal })));
  return [...new Map(answers.flatMap(({ data }) => data).map((run) => [run.id, run])).values()];
}
