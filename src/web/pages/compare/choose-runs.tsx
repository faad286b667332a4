/**
 * A searchable list of runs to compare. The first run that is chosen is the candidate; then the runs of its environment
 * and dataset come first.
 */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { type Asked, MOST_RUNS } from "./asked.ts";
import { choicesOf } from "./choices.ts";
import { useComparedRuns } from "./use-compared-runs.ts";

const LISTED = 20;
/** The most characters of a search that the API takes. */
const MOST = 200;

interface ChooseRunsProps {
  readonly asked: Asked;
  /** Adds the run, or removes it. */
  readonly onToggle: (id: string) => void;
}

export function ChooseRuns({ asked, onToggle }: ChooseRunsProps) {
  const [search, setSearch] = useState("");
  const like = useComparedRuns(asked.first === "" ? [] : [asked.first]).runs[0];
  const alike = useListedRuns(search, like?.environment.id);
  const all = useListedRuns(search, undefined);
  const queries = like === undefined ? [all] : [alike, all];
  const found = queries.flatMap(({ data }) => data?.data ?? []);
  const isLoading = queries.some(({ data, error }) => data === undefined && error === null);
  return (
    <fieldset className="choose-runs">
      <legend>{titleOf(asked)}</legend>
      <SearchField value={search} onChange={setSearch} placeholder="name, model, id" action="search runs" most={MOST} />
      {queries.map(({ error, refetch }, at) =>
        error === null ? null : <ErrorNote key={at === 0 ? "first" : "all"} error={error} onRetry={() => refetch()} />,
      )}
      {isLoading && <Loading what="runs" />}
      {!isLoading && found.length === 0 && <p>No matching runs.</p>}
      {found.length > 0 && (
        <ul>
          {choicesOf(found, like).flatMap(({ title, runs }) => [
            <li key={title} className="soft">
              {title}
            </li>,
            ...runs.map((run) => (
              <li key={run.id}>
                <Choice run={run} asked={asked} onToggle={onToggle} />
              </li>
            )),
          ])}
        </ul>
      )}
      {all.data?.has_more === true && (
        <p className="soft">Only the newest {countText(LISTED)} are listed: search for others.</p>
      )}
    </fieldset>
  );
}

function titleOf({ runs, role }: Asked): string {
  if (runs.length === 0) return "Choose the candidate";
  return role === "candidate"
    ? `Choose baselines, at most ${MOST_RUNS - 1}`
    : `Choose candidates, at most ${MOST_RUNS - 1}`;
}

/** `environment`: only its runs. */
function useListedRuns(search: string, environment: string | undefined) {
  const query = { search: search || undefined, environment, limit: LISTED };
  return useQuery({
    queryKey: ["runs", "choices", query],
    queryFn: ({ signal }) => api.runs.list(query, { signal }),
    placeholderData: keepPreviousData,
  });
}

interface ChoiceProps extends ChooseRunsProps {
  readonly run: RunView;
}

function Choice({ run, asked: { runs }, onToggle }: ChoiceProps) {
  const { id, name, environment, model, report, created_at } = run;
  const isChosen = runs.includes(id);
  return (
    <label className="row">
      <input
        type="checkbox"
        checked={isChosen}
        disabled={!isChosen && runs.length >= MOST_RUNS}
        onChange={() => onToggle(id)}
      />
      <Shown text={name ?? id} most={80} />
      <span className="soft">
        <Shown text={`${environment.id}@${environment.version}`} most={80} />, <Shown text={model} most={80} />, mean{" "}
        {scoreText(report.reward.mean)}, <Ago at={created_at} />
      </span>
    </label>
  );
}
