/**
 * Starts a run of any environment. The URL may contain `environment`, `from` (the run whose settings the form begins
 * with), and what the form reads from it.
 */
import { useQuery } from "@tanstack/react-query";
import type { EnvironmentView, RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useMay } from "../../layout/session.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { ENDPOINTS } from "./field-input.tsx";
import { labelOf } from "./fields.ts";
import { RunForm } from "./form.tsx";
import { inlineJudges } from "./preset.ts";

export function Page() {
  useDocumentTitle("New run");
  const [{ environment, from: fromId }] = useAddress();
  const { data, error, refetch } = useEnvironments();
  const from = useQuery({
    queryKey: ["run", fromId, "settings"],
    queryFn: ({ signal }) => api.runs.get(fromId ?? "", { signal }),
    enabled: fromId !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const mayReadEndpoints = useMay("endpoints:read");
  const endpoints = useQuery({ ...ENDPOINTS, enabled: fromId !== undefined && mayReadEndpoints });
  // The list is complete, or the ids are left as they are.
  const ids = endpoints.data?.has_more === false ? endpoints.data.data.map(({ id }) => id) : null;
  const unnamed = from.data === undefined || ids === null ? [] : inlineJudges(from.data, ids);
  const name = environment ?? nameIn(from.data, data);
  const named = useNamed(name, data);
  const listed = data?.find((one) => isNamed(one, name)) ?? data?.[0];
  const failed = [
    ...(error === null ? [] : [{ error, retry: refetch }]),
    ...(from.error === null ? [] : [{ error: from.error, retry: from.refetch }]),
    ...(named.error === null ? [] : [{ error: named.error, retry: named.refetch }]),
  ];
  const isLoading = data === undefined || from.isLoading || endpoints.isLoading || named.isLoading;
  return (
    <main>
      <h1>New run</h1>
      <StartFrom from={from.data} needsRows={(named.data ?? listed)?.dataset === "uploaded"} unnamed={unnamed} />
      {failed.map((one) => (
        <ErrorNote key={String(one.error)} error={one.error} onRetry={one.retry} />
      ))}
      {failed.length === 0 && isLoading && <Loading what="environments" />}
      {failed.length === 0 && !isLoading && (
        <RunForm
          key={fromId ?? ""}
          environments={named.data === undefined ? data : [named.data, ...data]}
          first={named.data ?? listed}
          from={from.data}
          unnamed={unnamed}
        />
      )}
    </main>
  );
}

/** The environment of a run. One that comes with the deployment has only its present version. */
function nameIn(run: RunView | undefined, environments: readonly EnvironmentView[] | undefined): string | undefined {
  if (run === undefined) return undefined;
  const { id } = run.environment;
  const isOwn = environments?.some((one) => one.id === id && one.published === null);
  return isOwn ? id : `${id}@${run.environment.version}`;
}

/** The most runs to choose from. */
const RUNS = 50;

interface StartFromProps {
  readonly from: RunView | undefined;
  /** The environment has no rows of its own. */
  readonly needsRows: boolean;
  /** Judges whose endpoint cannot be named. */
  readonly unnamed: readonly string[];
}

function StartFrom({ from, needsRows, unnamed }: StartFromProps) {
  const [search, change] = useAddress();
  const { data } = useQuery({
    queryKey: ["runs", "to start from"],
    queryFn: ({ signal }) => api.runs.list({ limit: RUNS }, { signal }),
  });
  const runs = data?.data ?? [];
  const all = from === undefined || runs.some(({ id }) => id === from.id) ? runs : [from, ...runs];
  if (all.length === 0) return null;
  return (
    <p className="row start-from">
      <label className="row">
        Start from
        <select
          value={search["from"] ?? ""}
          onChange={({ target }) => change({ from: target.value || undefined }, { replace: false })}
        >
          <option value="">an empty form</option>
          {all.map((run) => (
            <option key={run.id} value={run.id}>
              {run.name ?? run.id} · {run.environment.id} · {run.model}
            </option>
          ))}
        </select>
      </label>
      {from !== undefined && <span className="soft">{lackOf(from, needsRows, unnamed)}</span>}
    </p>
  );
}

/** What the settings of a run do not include. */
function lackOf({ kind, endpoint, dataset }: RunView, needsRows: boolean, unnamed: readonly string[]): string {
  const lacks = [
    ...(endpoint !== null && endpoint.name === null ? ["the key of its endpoint"] : []),
    ...(dataset === null && needsRows ? ["the rows that were sent with it"] : []),
    ...unnamed.map((judge) => `the endpoint of its judge ${judge}`),
    ...(kind === "training" ? ["its trainer and its evals"] : []),
  ];
  return `With the settings of the run${lacks.length === 0 ? "" : `, without ${lacks.join(" and ")}`}.`;
}

/** The environment of the URL, if the first page of the list does not have this version of it. */
function useNamed(name: string | undefined, listed: readonly EnvironmentView[] | undefined) {
  const isListed = listed?.some((one) => isNamed(one, name)) ?? true;
  return useQuery({
    queryKey: ["environment", name],
    queryFn: ({ signal }) => api.environments.get(name ?? "", { signal }),
    enabled: name !== undefined && !isListed,
  });
}

/** With or without its version. */
function isNamed(environment: EnvironmentView, name: string | undefined): boolean {
  return environment.id === name || labelOf(environment) === name;
}
