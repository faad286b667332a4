/**
 * Starts a run of any environment. The URL may contain `environment`, `from` (the run whose settings the form begins
 * with), and what the form reads from it.
 */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { EnvironmentView, RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { useEnvironments } from "../../components/use-environments.ts";
import { useMay } from "../../layout/session.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { labelOf } from "./fields.ts";
import { RunForm } from "./form.tsx";
import { ENDPOINTS } from "./known.ts";
import { inlineJudges } from "./preset.ts";

export function Page() {
  useDocumentTitle("New run");
  const [search] = useAddress();
  const { data, error, refetch } = useEnvironments();
  const preset = usePreset(search["from"]);
  const { run, unnamed } = preset;
  const name = search["environment"] ?? nameIn(run, data);
  const named = useNamed(name, error === null ? data : []);
  const first = named.data ?? data?.find((one) => isNamed(one, name)) ?? data?.[0];
  const failed = [{ error, refetch }, preset, named].filter((one) => one.error !== null);
  const isLoading = (data === undefined && error === null) || preset.isLoading || named.isLoading;
  const hasForm = preset.error === null && named.error === null && !isLoading && (data ?? named.data) !== undefined;
  return (
    <main>
      <h1>New run</h1>
      <StartFrom from={run} needsRows={first?.dataset === "uploaded"} unnamed={unnamed} />
      {failed.map((one) => (
        <ErrorNote key={String(one.error)} error={one.error} onRetry={one.refetch} />
      ))}
      {data === undefined && error !== null && <NameEnvironment name={name} />}
      {isLoading && <Loading what="environments" />}
      {hasForm && (
        <RunForm
          key={`${run?.id ?? ""} ${data === undefined ? labelOf(named.data) : ""}`}
          environments={[...(named.data === undefined ? [] : [named.data]), ...(data ?? [])]}
          first={first}
          from={run}
          unnamed={unnamed}
        />
      )}
    </main>
  );
}

/** Writes the name of an environment, if the list of them cannot be read. */
function NameEnvironment({ name = "" }: { readonly name: string | undefined }) {
  const [, change] = useAddress();
  const [text, setText] = useState(name);
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        change({ environment: text.trim() || undefined }, { replace: false });
      }}
    >
      <label className="row">
        Environment
        <input
          value={text}
          required
          maxLength={500}
          autoComplete="off"
          spellCheck={false}
          onChange={({ target }) => setText(target.value)}
        />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

/** The run whose settings the form begins with, and its judges whose endpoint cannot be named. */
function usePreset(id: string | undefined) {
  const mayReadEndpoints = useMay("endpoints:read");
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["run", id, "settings"],
    queryFn: ({ signal }) => api.runs.get(id ?? "", { signal }),
    enabled: id !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const needsEndpoints = id !== undefined && mayReadEndpoints;
  const endpoints = useQuery({ ...ENDPOINTS, enabled: needsEndpoints });
  // The form reads them too, and must stay while it does.
  const isWaiting = needsEndpoints && !endpoints.isFetched;
  // Without the complete list, the ids are left as they are.
  const ids = endpoints.data?.has_more === false ? endpoints.data.data.map((one) => one.id) : null;
  const unnamed = data === undefined || ids === null ? [] : inlineJudges(data, ids);
  return { run: data, unnamed, error, isLoading: isLoading || isWaiting, refetch };
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
