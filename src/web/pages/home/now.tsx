/** The runs that have not ended, and why some of them wait. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunStatus, RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { OutcomeBar } from "../../components/outcome-bar.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";

const UNFINISHED: readonly RunStatus[] = ["running", "queued", "paused"];
/** The reason why a run waits is only in the run itself, so this many are read one by one. */
const MOST = 8;
const BUSY_MS = 4000;
const IDLE_MS = 15_000;

interface Unfinished {
  readonly runs: readonly RunView[];
  /** There are more. */
  readonly more: boolean;
}

async function readUnfinished(signal: AbortSignal): Promise<Unfinished> {
  const pages = await Promise.all(UNFINISHED.map((status) => api.runs.list({ status, limit: MOST }, { signal })));
  const listed = pages.flatMap(({ data }) => data);
  const runs = await Promise.all(listed.slice(0, MOST).map(({ id }) => api.runs.get(id, { signal })));
  return { runs, more: listed.length > MOST || pages.some(({ has_more }) => has_more) };
}

export function Now() {
  const { data, error, refetch } = useQuery({
    queryKey: ["runs", "home", "unfinished"],
    queryFn: ({ signal }) => readUnfinished(signal),
    refetchInterval: ({ state }) => ((state.data?.runs.length ?? 0) > 0 ? BUSY_MS : IDLE_MS),
  });
  return (
    <section>
      <h2>Running and waiting</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="what runs" />}
      {data?.runs.length === 0 && <p className="soft">No run is running or waiting.</p>}
      {data !== undefined && data.runs.length > 0 && (
        <ul className="home-list">
          {data.runs.map((run) => (
            <li key={run.id}>
              <Unfinished run={run} />
            </li>
          ))}
        </ul>
      )}
      {data?.more && (
        <p>
          <Link to="/runs" search={{ status: "running" } as never}>
            All running runs
          </Link>
        </p>
      )}
    </section>
  );
}

function Unfinished({ run }: { readonly run: RunView }) {
  const { id, name, status, status_reason, environment, model, counts, created_at } = run;
  const waits = status_reason !== null && status_reason.state !== "active";
  return (
    <>
      <div className="row spread">
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name ?? id} most={120} />
        </Link>
        {waits && status === "running" ? <Badge state={status_reason.state} tone="warn" /> : <Badge state={status} />}
      </div>
      <p className="soft">
        <Shown text={environment.id} /> · <Shown text={model} /> · begun <Ago at={created_at} /> ·{" "}
        {countText(counts.scored)} of {countText(counts.planned)} scored
      </p>
      {status === "paused" && <p>Nothing is dispatched until it is resumed.</p>}
      {waits && status !== "paused" && status_reason.reason !== null && (
        <p>
          Waits: <Shown text={status_reason.reason} most={400} />
        </p>
      )}
      <OutcomeBar counts={counts} />
    </>
  );
}
