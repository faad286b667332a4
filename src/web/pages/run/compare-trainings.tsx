/** Links to the curves of this training and of other trainings with the same environment. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { MOST_RUNS } from "../compare/asked.ts";

export function CompareTrainings({ run }: { readonly run: RunView }) {
  const environment = run.environment.id;
  const { data, error, refetch } = useQuery({
    queryKey: ["runs", "trainings", environment],
    // One more than fits, because the list may contain this run.
    queryFn: ({ signal }) => api.runs.list({ kind: "training", environment, limit: MOST_RUNS }, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  const others = (data?.data ?? []).filter(({ id }) => id !== run.id).slice(0, MOST_RUNS - 1);
  if (others.length === 0) return null;
  const runs = [run.id, ...others.map(({ id }) => id)].join(",");
  return (
    <p>
      <Link to="/compare" search={{ runs, baseline: run.id } as never} className="button">
        Compare with {others.length === 1 ? "the other training" : `${countText(others.length)} other trainings`} of
        this environment
      </Link>
    </p>
  );
}
