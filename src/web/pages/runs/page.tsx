/** All runs: the state, score and cost of each, searched, sorted and grouped. Marked runs can be compared. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import type { RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { DataTable } from "../../components/data-table.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { FirstSteps } from "../../components/first-steps.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { useMedia } from "../../components/use-media.ts";
import { useDocumentTitle } from "../../layout/title.ts";
import { runColumns } from "./columns.tsx";
import { Filters } from "./filters.tsx";
import { groupingText, groupRows, type RunRow, rowIdOf } from "./group-rows.ts";
import { Marked, useMarked } from "./marked.tsx";
import { LIMITING } from "./run-list.ts";
import { useRuns } from "./use-runs.ts";
import "./runs.css";

/** Groups are made of this many runs at most, the first of the list. */
const GROUPED = 200;

export function Page() {
  useDocumentTitle("Runs");
  const [search] = useAddress();
  const { rows, more, hasMore, error, retry, isLoading } = useRuns(search);
  const { group } = search;
  const wantsMore = group !== undefined && hasMore && rows.length < GROUPED;
  useEffect(() => {
    if (wantsMore) more();
  });
  const covered = group === undefined ? rows : rows.slice(0, GROUPED);
  return (
    <main className="runs">
      <div className="row spread">
        <h1>Runs</h1>
        <Link to="/runs/new" search={{}} className="button">
          New run
        </Link>
      </div>
      <Filters runs={rows} />
      {group !== undefined && (hasMore || rows.length > GROUPED) && (
        <p className="soft">
          By {groupingText(group)}: the first {countText(covered.length)} of these runs.
        </p>
      )}
      {error !== null && <ErrorNote error={error} onRetry={() => retry()} />}
      {isLoading && error === null && <Loading what="runs" />}
      {!isLoading && <RunTable runs={covered} more={group === undefined ? more : undefined} />}
    </main>
  );
}

interface RunTableProps {
  readonly runs: readonly RunView[];
  /** Reads the next page. */
  readonly more: (() => void) | undefined;
}

function RunTable({ runs, more }: RunTableProps) {
  const navigate = useNavigate();
  const [search, change] = useAddress();
  const { marked, mark, clear } = useMarked();
  const isWide = useMedia("(min-width: 1500px)");
  const columns = useMemo(() => runColumns({ marked, mark, isWide }), [marked, mark, isWide]);
  const { group, sort } = search;
  const rows = useMemo(() => groupRows(runs, group), [runs, group]);
  const compare = () => {
    if (marked.length < 2) return;
    // Ids sort by the time the runs were started: the baseline is the oldest, in whatever order they were marked.
    const [baseline, ...others] = marked.toSorted();
    navigate({ to: "/compare", search: { runs: [baseline, ...others].join(","), baseline } }).catch(reportError);
  };
  const limits = LIMITING.map((name) => search[name]);
  const shown = JSON.stringify([...limits, group]);
  const ofRun = (act: (run: RunView) => void) => (row: RunRow) => {
    if (row.is === "run") act(row.run);
  };
  return (
    <>
      <DataTable
        key={shown}
        of={shown}
        label="Runs"
        columns={columns}
        rows={rows}
        rowId={rowIdOf}
        rowHeight={68}
        sort={sort ?? "-created"}
        onSort={(next) => change({ sort: next })}
        onOpen={ofRun(({ id }) => {
          navigate({ to: "/runs/$id", params: { id }, search: {} }).catch(reportError);
        })}
        rowKeys={[
          { keys: "x", label: "mark the run for a comparison (or Space)", run: ofRun(({ id }) => mark(id)) },
          { keys: " ", label: "mark the run for a comparison", run: ofRun(({ id }) => mark(id)) },
        ]}
        empty={limits.some((one) => one !== undefined) ? <p>No matching runs.</p> : <FirstSteps />}
        {...(more !== undefined && { onEnd: more })}
      />
      <Marked marked={marked} onCompare={compare} onClear={clear} />
    </>
  );
}
