/** A log of deliveries, newest first, read again while it is shown. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo } from "react";
import type { CallOptions, Page } from "../../sdk/options.ts";
import { type Column, DataTable } from "./data-table.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Loading } from "./loading.tsx";

const PAGE = 50;
const REFETCH_MS = 5000;

interface DeliveryLogProps<Delivery extends { readonly id: string }> {
  readonly label: string;
  readonly queryKey: readonly string[];
  readonly list: (after: string | undefined, limit: number, options: CallOptions) => Promise<Page<Delivery>>;
  readonly columns: readonly Column<Delivery>[];
  readonly empty: ReactNode;
}

export function DeliveryLog<Delivery extends { readonly id: string }>(props: DeliveryLogProps<Delivery>) {
  const { label, queryKey, list, columns, empty } = props;
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => list(pageParam, PAGE, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
    // Only while one page is open: older pages do not change.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFETCH_MS),
  });
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) fetchNextPage().catch(reportError);
  }, [hasNextPage, isFetching, fetchNextPage]);
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="deliveries" />;
  return <DataTable label={label} columns={columns} rows={rows} rowId={({ id }) => id} onEnd={more} empty={empty} />;
}
