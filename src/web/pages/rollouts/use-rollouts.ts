/** Loads a run's rollouts, filtered and sorted by the platform; only the pages near the visible rows are kept. */
import { useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { RolloutSummary, RolloutSummaryList } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { useKept } from "../../kept.ts";
import { useLastLook } from "../run/use-last-look.ts";
import { FIRST, type KnownPage, PAGE_ROWS, pagesAt, startsOf, withRead } from "./known-pages.ts";

/** Pages within this many rows of the rows that are laid out are loaded too. */
const AROUND = 50;
/** When a page that is no longer visible is dropped. */
const FORGET_MS = 5000;
const LIVE_MS = 4000;
/** A text search that has not read every prompt continues with each request. */
const SEARCH_MS = 1000;

export interface Asked {
  readonly run: string;
  readonly filter: string;
  readonly sort: string | undefined;
  /** True while rollouts start and end. */
  readonly live: boolean;
}

export function useRollouts({ run, filter, sort, live }: Asked) {
  const [found, keep] = useKept<readonly KnownPage[]>(`pages ${filter} ${sort}`);
  const [known, setKnown] = useState(found ?? FIRST);
  const [[first, last], setSeen] = useState<readonly [first: number, last: number]>([0, 0]);
  const wanted = useMemo(
    () => [...new Set([0, ...pagesAt(known, Math.max(0, first - AROUND), last + AROUND)])],
    [known, first, last],
  );
  useLastLook(run, live);
  const results = useQueries({
    queries: wanted.map((at) => {
      const after = known[at]?.after;
      return {
        queryKey: ["rollouts", run, filter, sort, after],
        queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
          api.rollouts.list(run, { filter, sort, after, limit: PAGE_ROWS, matched: at === 0 }, { signal }),
        gcTime: FORGET_MS,
        staleTime: live ? LIVE_MS : Number.POSITIVE_INFINITY,
        refetchInterval: ({ state }: { readonly state: { readonly data?: RolloutSummaryList | undefined } }) =>
          isSearching(state.data) ? SEARCH_MS : live && LIVE_MS,
      };
    }),
    combine: combined,
  });
  // Computed at once: new rows must make the list longer before the position of an existing row is looked up.
  const pages = useMemo(() => {
    return wanted.reduce((then, at, nth) => {
      const read = results.data[nth];
      return read === undefined ? then : withRead(then, at, read);
    }, known);
  }, [known, wanted, results]);
  useEffect(() => {
    setKnown(pages);
    keep(pages);
  }, [pages, keep]);
  const rows = useMemo(() => {
    const starts = startsOf(pages);
    const list: (RolloutSummary | undefined)[] = new Array(starts.at(-1) ?? 0).fill(undefined);
    wanted.forEach((at, nth) => {
      // A page that was read after another cursor has moved since.
      if (known[at]?.after !== pages[at]?.after) return;
      const start = starts[at] ?? 0;
      results.data[nth]?.data.forEach((row, index) => {
        if (start + index < list.length) list[start + index] = row;
      });
    });
    return list;
  }, [known, pages, wanted, results]);
  const onSeen = useCallback((from: number, to: number) => setSeen([from, to]), []);
  const top = results.data[0];
  return {
    rows: top === undefined ? NONE : rows,
    onSeen,
    isLoading: top === undefined,
    matched: top?.matched ?? null,
    searched: top?.searched ?? null,
    error: results.error,
    refetch: results.refetch,
  };
}

const NONE: readonly undefined[] = [];

interface Results {
  readonly data: readonly (RolloutSummaryList | undefined)[];
  readonly error: Error | null;
  readonly refetch: () => void;
}

interface Result {
  readonly data: RolloutSummaryList | undefined;
  readonly error: Error | null;
  readonly refetch: () => Promise<unknown>;
}

function combined(results: readonly Result[]): Results {
  return {
    data: results.map(({ data }) => data),
    error: results.find(({ error }) => error !== null)?.error ?? null,
    refetch: () => {
      for (const { refetch } of results) refetch().catch(reportError);
    },
  };
}

function isSearching(list: RolloutSummaryList | undefined): boolean {
  const searched = list?.searched ?? null;
  return searched !== null && searched.rollouts < searched.of;
}
