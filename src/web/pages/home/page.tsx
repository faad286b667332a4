/** The first page of a team: what it costs, what runs, waits and failed, and the scores of its evals. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunQuery } from "../../../sdk/options.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { FirstSteps } from "../../components/first-steps.tsx";
import { Loading } from "../../components/loading.tsx";
import { useMay } from "../../layout/session.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { Failed } from "./failed.tsx";
import { Now } from "./now.tsx";
import { Spend } from "./spend.tsx";
import { Trainings } from "./trainings.tsx";
import { Trends } from "./trend-table.tsx";
import "./home.css";

/** The page shows the newest of them. */
const EVALS = 100;
const AGAIN_MS = 15_000;

export function Page() {
  useDocumentTitle("Home");
  const mayReadUsage = useMay("billing:read");
  const { data: runs, error, refetch } = useLatest({ limit: EVALS });
  return (
    <main className="home">
      <div className="row spread">
        <h1>Home</h1>
        <Link to="/runs/new" search={{}} className="button">
          New run
        </Link>
      </div>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {runs === undefined && error === null && <Loading what="runs" />}
      {runs?.data.length === 0 && <FirstSteps />}
      {runs !== undefined && runs.data.length > 0 && (
        <>
          {mayReadUsage && <Spend />}
          <div className="columns">
            <Now />
            <Failed runs={runs.data} />
          </div>
          <Trends runs={runs.data.filter(({ kind }) => kind === "eval")} />
          <Trainings runs={runs.data.filter(({ kind }) => kind === "training")} />
          {runs.has_more && <p className="soft">From the newest {EVALS} runs.</p>}
        </>
      )}
    </main>
  );
}

function useLatest(query: RunQuery) {
  return useQuery({
    queryKey: ["runs", "home", query],
    queryFn: ({ signal }) => api.runs.list(query, { signal }),
    refetchInterval: AGAIN_MS,
  });
}
