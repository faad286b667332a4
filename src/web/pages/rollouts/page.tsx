/** The rollouts of a run; the URL holds the filter, the order and the columns. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { parseFilter, parseSort, TEXT_SEARCHES } from "../../../contract/filter.ts";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import type { RunView } from "../../../contract/run.ts";
import { useAddress, useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { DataTable } from "../../components/data-table.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { FilterBar } from "../../components/filter-bar.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { hasEnded } from "../run/progress.ts";
import { ColumnChooser } from "./column-chooser.tsx";
import { chosenColumns, firstColumns, printColumns, rolloutColumns } from "./columns.tsx";
import { SaveList } from "./save-list.tsx";
import { useRollouts } from "./use-rollouts.ts";
import "./rollouts.css";

export function Page() {
  const id = useParam("id");
  const {
    data: run,
    error,
    refetch,
  } = useQuery({
    queryKey: ["run", id],
    queryFn: ({ signal }) => api.runs.get(id, { signal }),
    refetchInterval: ({ state }) => (state.data !== undefined && !hasEnded(state.data) ? 5000 : false),
  });
  const name = run?.name ?? id;
  useDocumentTitle(`Rollouts of ${name}`);
  return (
    <main className="rollouts">
      <h1>
        Rollouts of{" "}
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name} />
        </Link>
      </h1>
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {run === undefined && error === null && <Loading what="the run" />}
      {run !== undefined && <Filtered run={run} />}
    </main>
  );
}

function Filtered({ run }: { readonly run: RunView }) {
  const [search, change] = useAddress();
  const filter = search["filter"] ?? "";
  const { report } = run;
  const metrics = Object.keys(report.metrics);
  return (
    <>
      <FilterBar
        label="Filter"
        value={filter}
        metrics={metrics}
        stops={Object.keys(report.stop_conditions)}
        members={Object.keys(report.members ?? {})}
        onChange={(text) => change({ filter: text || undefined }, { replace: false })}
      />
      {parseFilter(filter).ok ? (
        <List key={`${filter}\n${search["sort"]}`} run={run} metrics={metrics} />
      ) : (
        <p>The filter in the address is invalid: the error is marked above.</p>
      )}
    </>
  );
}

function List({ run, metrics }: { readonly run: RunView; readonly metrics: readonly string[] }) {
  const [search, change] = useAddress();
  const navigate = useNavigate();
  const { filter } = search;
  const sort = parseSort(search["sort"] ?? "") === null ? undefined : search["sort"];
  const asked = { run: run.id, filter: filter ?? "", sort, live: !hasEnded(run) };
  const { rows, onSeen, isLoading, matched, searched, error, refetch } = useRollouts(asked);
  const first = firstColumns(run);
  const chosen = chosenColumns(search["columns"], metrics, first);
  const shown = chosen.join("\n");
  const from = { list: run.id, filter, sort };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the columns are others when their ids or the address are
  const columns = useMemo(() => rolloutColumns(chosen, from), [shown, run.id, filter, sort]);
  const open = ({ id }: RolloutSummary) => {
    navigate({ to: "/rollouts/$id", params: { id }, search: from as never }).catch(reportError);
  };
  return (
    <>
      <div className="row spread">
        <Found matched={matched} searched={searched} />
        <div className="row">
          <SaveList run={run.id} filter={filter} sort={sort} metrics={metrics} matched={matched} />
          <ColumnChooser
            metrics={metrics}
            chosen={chosen}
            onChange={(ids) => change({ columns: printColumns(ids, first) })}
          />
        </div>
      </div>
      {error !== null && <ErrorNote error={error} onRetry={refetch} />}
      {isLoading && error === null && <Loading what="rollouts" />}
      {!isLoading && (
        <DataTable
          label="Rollouts"
          columns={columns}
          rows={rows}
          rowId={idOf}
          of={filter ?? ""}
          sort={sort}
          onSort={(next) => change({ sort: next })}
          onSeen={onSeen}
          onOpen={open}
          empty={<p>{filter === undefined ? "No rollouts yet." : "No rollout matches this filter."}</p>}
        />
      )}
    </>
  );
}

const idOf = ({ id }: RolloutSummary) => id;

interface FoundProps {
  readonly matched: number | null;
  readonly searched: { readonly rollouts: number; readonly of: number } | null;
}

function Found({ matched, searched }: FoundProps) {
  return (
    <p role="status" className="found-rollouts">
      {matched !== null && `${countText(matched)} ${matched === 1 ? "rollout" : "rollouts"}`}
      {searched !== null && (
        <span className="soft searched">
          Searched {countText(searched.rollouts)} of {countText(searched.of)}: {TEXT_SEARCHES}.
        </span>
      )}
    </p>
  );
}
