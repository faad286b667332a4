/** A run's groups: the rollouts of one task each, page by page. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { parseFilter } from "../../../contract/filter.ts";
import { GROUP_SORTS, type GroupSummary } from "../../../contract/rollout-list.ts";
import type { RunView } from "../../../contract/run.ts";
import type { GroupListQuery } from "../../../sdk/options.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { FilterBar } from "../../components/filter-bar.tsx";
import { countText, NOTHING, numberText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { TaskName } from "../../components/task-name.tsx";
import { hasEnded } from "./progress.ts";

const PAGE = 100;
const LIVE_MS = 5000;
const LIVE_PAGES = 3;

export function GroupsTab({ run }: { readonly run: RunView }) {
  const [search, change] = useAddress();
  const filter = search["filter"] ?? "";
  const sort = groupSort(search["sort"]);
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["groups", run.id, filter, sort],
    queryFn: ({ pageParam, signal }) =>
      api.runs.groups.list(run.id, { filter, sort, limit: PAGE, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
    enabled: parseFilter(filter).ok,
    // Each time reads all loaded pages again; if there are many, they are not refreshed.
    refetchInterval: ({ state }) => !hasEnded(run) && (state.data?.pages.length ?? 0) <= LIVE_PAGES && LIVE_MS,
    placeholderData: keepPreviousData,
  });
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) fetchNextPage().catch(reportError);
  }, [hasNextPage, isFetching, fetchNextPage]);
  const navigate = useNavigate();
  const columns = useMemo(() => groupColumns(run), [run]);
  return (
    <>
      <FilterBar
        label="Groups with a rollout for which"
        value={filter}
        metrics={Object.keys(run.report.metrics)}
        onChange={(text) => change({ filter: text || undefined })}
      />
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {data === undefined && error === null && <Loading what="groups" />}
      {data !== undefined && (
        <DataTable
          key={`${filter} ${sort}`}
          label="Groups"
          columns={columns}
          rows={rows}
          rowId={idOf}
          of={filter}
          sort={sort}
          onSort={(next) => change({ sort: next })}
          onEnd={more}
          onOpen={({ group }) => {
            const params = { id: run.id, group: String(group) };
            navigate({ to: "/runs/$id/groups/$group", params, search: {} }).catch(reportError);
          }}
          empty={<p>No matching groups.</p>}
        />
      )}
    </>
  );
}

const idOf = ({ group }: GroupSummary) => String(group);

function groupSort(text: string | undefined): GroupListQuery["sort"] {
  const by = GROUP_SORTS.find((one) => one === text || `-${one}` === text);
  if (by === undefined) return undefined;
  return text?.startsWith("-") ? `-${by}` : by;
}

function groupColumns({ id, kind, report }: RunView): readonly Column<GroupSummary>[] {
  return [
    {
      id: "group",
      header: "Group",
      width: 10,
      sort: "group",
      cell: ({ group }) => (
        <Link to="/runs/$id/groups/$group" params={{ id, group: String(group) }} search={{}}>
          {countText(group)}
        </Link>
      ),
    },
    { id: "task", header: "Task", cell: (group) => <TaskName task={group} /> },
    ...(report.members === undefined ? [] : [MEMBER]),
    { id: "members", header: "Rollouts", width: 18, cell: ({ counts }) => countsText(counts) },
    {
      id: "reward",
      header: "Mean reward",
      width: 14,
      sort: "reward",
      numeric: true,
      cell: ({ reward }) => scoreText(reward.mean),
    },
    { id: "range", header: "From, to", width: 16, numeric: true, cell: ({ reward }) => rangeText(reward) },
    {
      id: "sd",
      header: "SD",
      width: 12,
      sort: "reward_sd",
      numeric: true,
      cell: ({ reward, zero_variance }) =>
        zero_variance ? <Badge state="all equal" tone="warn" /> : scoreText(reward.sd),
    },
    { id: "turns", header: "Turns", width: 9, sort: "turns", numeric: true, cell: (one) => numberText(one.mean_turns) },
    {
      id: "tokens",
      header: "Tokens",
      width: 10,
      sort: "tokens",
      numeric: true,
      cell: (one) => numberText(one.mean_tokens),
    },
    ...(kind === "training" ? [TRAINED] : []),
  ];
}

/** For a group of environments. */
const MEMBER: Column<GroupSummary> = {
  id: "member",
  header: "Member",
  width: 16,
  cell: ({ member }) => (member === null ? NOTHING : <Shown text={member} />),
};

const TRAINED: Column<GroupSummary> = {
  id: "training",
  header: "Training",
  width: 20,
  cell: ({ training }) => {
    if (training === null) return NOTHING;
    const { state, reason, step } = training;
    return `${state}${step === null ? "" : ` for step ${step}`}${reason === null ? "" : `: ${reason.replaceAll("_", " ")}`}`;
  },
};

function countsText({ scored, unscored, failed, cancelled, in_flight }: GroupSummary["counts"]): string {
  const parts = { scored, unscored, failed, cancelled, "in flight": in_flight };
  const there = Object.entries(parts).filter(([, n]) => n > 0);
  return there.length === 0 ? NOTHING : there.map(([name, n]) => `${n} ${name}`).join(", ");
}

function rangeText({ min, max }: GroupSummary["reward"]): string {
  return min === null ? NOTHING : `${scoreText(min)}, ${scoreText(max)}`;
}
