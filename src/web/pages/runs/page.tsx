/** All runs, newest first: the state, result and cost of each. Marked runs can be compared. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { RUN_KINDS, RUN_STATUSES, type RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { DataTable } from "../../components/data-table.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useKeys } from "../../layout/keys.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { runColumns } from "./columns.tsx";
import { useRuns } from "./use-runs.ts";
import "./runs.css";

/** The most runs in one comparison. */
const MOST = 8;

export function Page() {
  useDocumentTitle("Runs");
  const [search] = useAddress();
  const { rows, more, error, refetch, isLoading } = useRuns(search);
  return (
    <main className="runs">
      <div className="row spread">
        <h1>Runs</h1>
        <Link to="/runs/new" search={{}} className="button">
          New run
        </Link>
      </div>
      <Filters />
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {isLoading && error === null && <Loading what="runs" />}
      {!isLoading && <RunTable rows={rows} more={more} />}
    </main>
  );
}

function RunTable({ rows, more }: { readonly rows: readonly RunView[]; readonly more: () => void }) {
  const navigate = useNavigate();
  const [search] = useAddress();
  const { marked, mark, clear } = useMarked();
  const columns = useMemo(() => runColumns(marked, mark), [marked, mark]);
  const compare = () => {
    if (marked.length < 2) return;
    // Ids sort by the time the runs were started: the baseline is the oldest, in whatever order they were marked.
    const [baseline, ...others] = marked.toSorted();
    navigate({ to: "/compare", search: { runs: [baseline, ...others].join(","), baseline } }).catch(reportError);
  };
  const { kind, status, environment } = search;
  const isFiltered = [kind, status, environment].some((one) => one !== undefined);
  const shown = JSON.stringify([kind, status, environment]);
  return (
    <>
      <DataTable
        key={shown}
        of={shown}
        label="Runs"
        columns={columns}
        rows={rows}
        rowId={idOf}
        rowHeight={60}
        onEnd={more}
        onOpen={({ id }) => {
          navigate({ to: "/runs/$id", params: { id }, search: {} }).catch(reportError);
        }}
        rowKeys={[
          { keys: "x", label: "mark the run for a comparison (or Space)", run: ({ id }) => mark(id) },
          { keys: " ", label: "mark the run for a comparison", run: ({ id }) => mark(id) },
        ]}
        empty={isFiltered ? <p>No matching runs.</p> : <FirstRun />}
      />
      <Marked marked={marked} onCompare={compare} onClear={clear} />
    </>
  );
}

const idOf = ({ id }: RunView) => id;

function FirstRun() {
  return (
    <p>
      No runs yet. <Link to="/runs/new">Start one</Link>.
    </p>
  );
}

/** The URL holds the marked runs; the first is the baseline. */
function useMarked() {
  const [search, change] = useAddress();
  const text = search["marked"] ?? "";
  const marked = useMemo(() => text.split(",").filter((id) => id !== ""), [text]);
  const mark = useMemo(() => {
    return (id: string) => {
      const next = marked.includes(id) ? marked.filter((one) => one !== id) : [...marked, id].slice(0, MOST);
      change({ marked: next.join(",") || undefined });
    };
  }, [marked, change]);
  return { marked, mark, clear: () => change({ marked: undefined }) };
}

interface MarkedProps {
  readonly marked: readonly string[];
  readonly onCompare: () => void;
  readonly onClear: () => void;
}

function Marked({ marked, onCompare, onClear }: MarkedProps) {
  useKeys([{ keys: "c", label: "compare the marked runs", run: onCompare }]);
  return (
    <p className="row marked-runs" role="status">
      {marked.length === 0 && <span className="soft">Mark two to {MOST} runs to compare them.</span>}
      {marked.length > 0 && (
        <>
          <span>
            {marked.length} of at most {MOST} runs marked; the oldest is the baseline.
          </span>
          <button type="button" disabled={marked.length < 2} onClick={onCompare}>
            Compare <kbd>c</kbd>
          </button>
          <button type="button" className="quiet" onClick={onClear}>
            Unmark all
          </button>
        </>
      )}
    </p>
  );
}

function Filters() {
  const [search, change] = useAddress();
  const { data: environments = [] } = useEnvironments();
  const ids = [...new Set(environments.map(({ id }) => id))];
  return (
    <form className="row run-filters" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <Choice name="Kind" value={search["kind"]} options={RUN_KINDS} onChange={(kind) => change({ kind })} />
      <Choice name="Status" value={search["status"]} options={RUN_STATUSES} onChange={(status) => change({ status })} />
      <Choice
        name="Environment"
        value={search["environment"]}
        options={ids}
        onChange={(environment) => change({ environment })}
      />
    </form>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly value: string | undefined;
  readonly options: readonly string[];
  readonly onChange: (value: string | undefined) => void;
}

function Choice({ name, value = "", options, onChange }: ChoiceProps) {
  const all = options.includes(value) || value === "" ? options : [...options, value];
  return (
    <label>
      {name}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">any</option>
        {all.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}
