/**
 * Compares two to eight runs task by task with one of them, the baseline, which is always named. The URL holds the
 * runs, the baseline, the compared score and the tasks that are listed.
 */
import { queryOptions, useQueries } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { RunComparison } from "../../../contract/comparison.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, differenceText, NOTHING, numberText, percentText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { type Asked, askedOf, KINDS, MOST_RUNS } from "./asked.ts";
import { LearningCurves } from "./learning-curves.tsx";
import { RunName } from "./run-name.tsx";
import { TaskDifferences } from "./task-differences.tsx";
import "./compare.css";

export function Page() {
  useDocumentTitle("Compare");
  const [search, change] = useAddress();
  const asked = askedOf(search);
  return (
    <main>
      <h1>Compare runs</h1>
      <RunPicker asked={asked} onChange={(runs) => change({ runs: runs.join(",") }, { replace: false })} />
      {asked.others.length === 0 ? (
        <p>
          Add two runs, or mark them in the list of runs and press c. The first is the baseline until you choose
          another.
        </p>
      ) : (
        <Compared asked={asked} />
      )}
    </main>
  );
}

/** Trainings are compared by their curves first; their tasks are compared on request. */
function Compared({ asked }: { readonly asked: Asked }) {
  const [search, change] = useAddress();
  const queries = useQueries({ queries: asked.runs.map(runQuery) });
  const runs = queries.flatMap(({ data }) => data ?? []);
  if (queries.some(({ isPending }) => isPending)) return <Loading what="the runs" />;
  const trainings = runs.filter(({ kind }) => kind === "training");
  if (trainings.length < 2) return <Comparisons asked={asked} />;
  const isOpen = trainings.length < runs.length || search["view"] === "tasks";
  return (
    <>
      <LearningCurves runs={trainings} />
      <p>
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => change({ view: isOpen ? undefined : "tasks" }, { replace: false })}
        >
          Compare them task by task
        </button>
      </p>
      {isOpen && <Comparisons asked={asked} />}
    </>
  );
}

const runQuery = (id: string) =>
  queryOptions({ queryKey: ["run", id], queryFn: ({ signal }) => api.runs.get(id, { signal }) });

interface RunPickerProps {
  readonly asked: Asked;
  readonly onChange: (runs: readonly string[]) => void;
}

function RunPicker({ asked, onChange }: RunPickerProps) {
  const [, change] = useAddress();
  const [text, setText] = useState("");
  const { runs, baseline } = asked;
  const add = (event: FormEvent) => {
    event.preventDefault();
    const named = text.split(/[\s,]+/).filter((one) => one !== "");
    setText("");
    onChange([...new Set([...runs, ...named])].slice(0, MOST_RUNS));
  };
  return (
    <section aria-label="Which runs">
      {runs.length > 0 && <p className="soft">The others are compared with the baseline:</p>}
      <ul className="picked">
        {runs.map((run) => (
          <li key={run} className="row">
            <label className="row">
              <input
                type="radio"
                name="baseline"
                checked={run === baseline}
                onChange={() => change({ baseline: run }, { replace: false })}
              />
              {run === baseline ? "the baseline" : "make it the baseline"}
            </label>
            <RunName id={run} />
            <code className="soft">…{run.slice(-6)}</code>
            <button type="button" className="quiet" onClick={() => onChange(runs.filter((one) => one !== run))}>
              Remove<span className="visually-hidden"> {run}</span>
            </button>
          </li>
        ))}
      </ul>
      {runs.length < MOST_RUNS && (
        <form className="row" onSubmit={add}>
          <label className="row">
            Another run
            <input type="text" value={text} placeholder="run_…" onChange={(event) => setText(event.target.value)} />
          </label>
          <button type="submit">Add</button>
        </form>
      )}
    </section>
  );
}

function Comparisons({ asked }: { readonly asked: Asked }) {
  const { baseline, others, metric } = asked;
  const queries = useQueries({
    queries: others.map((run) => ({
      queryKey: ["compare", run, baseline, metric],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.runs.compare(run, { baseline, metric, limit: 1 }, { signal }),
    })),
  });
  const known = queries.flatMap(({ data }) => (data === undefined ? [] : [data]));
  return (
    <>
      <MetricChoice asked={asked} known={known} />
      {queries.map(({ error, refetch }, index) => {
        if (error === null) return null;
        return <ErrorNote key={others[index]} error={error} onRetry={() => refetch()} />;
      })}
      {queries.some(({ isPending }) => isPending) && <Loading what="the comparisons" />}
      {known.length > 0 && <Summary known={known} />}
      <Detectable known={known} />
      <h2>Tasks</h2>
      <TaskKind asked={asked} />
      {known.map((comparison, at) => (
        <TaskDifferences
          key={`${comparison.run.id} ${asked.kind}`}
          asked={asked}
          comparison={comparison}
          isFirst={at === 0}
        />
      ))}
    </>
  );
}

interface ChoiceProps {
  readonly asked: Asked;
  readonly known: readonly RunComparison[];
}

/** The scores in the runs' reports. */
function MetricChoice({ asked, known }: ChoiceProps) {
  const [, change] = useAddress();
  const ids = [asked.baseline, ...asked.others];
  const runs = useQueries({ queries: ids.map(runQuery) });
  const names = runs.map(({ data }) => Object.keys(data?.report.metrics ?? {}));
  const shared = (names[0] ?? []).filter((name) => names.every((of) => of.includes(name)));
  const [first] = known;
  return (
    <p className="row">
      <label className="row">
        Compare
        <select value={asked.metric} onChange={(event) => change({ metric: event.target.value })}>
          <option>reward</option>
          {shared.map((name) => (
            <option key={name}>{name}</option>
          ))}
          {asked.metric !== "reward" && !shared.includes(asked.metric) && <option>{asked.metric}</option>}
        </select>
      </label>
      {first !== undefined && (
        <span className="soft">
          with the baseline <Shown text={`${first.baseline.environment} ${first.baseline.model}`} />, mean{" "}
          {scoreText(first.baseline.reward.mean)} of {countText(first.baseline.reward.n_rollouts)} scored rollouts
        </span>
      )}
    </p>
  );
}

function TaskKind({ asked }: { readonly asked: Asked }) {
  const [, change] = useAddress();
  return (
    <label className="row">
      Show the tasks that
      <select value={asked.kind} onChange={(event) => change({ only: event.target.value })}>
        {KINDS.map(({ kind, description }) => (
          <option key={kind} value={kind}>
            {description}
          </option>
        ))}
      </select>
    </label>
  );
}

/** One line per run: the paired difference to the baseline, and its basis. */
function Summary({ known }: { readonly known: readonly RunComparison[] }) {
  return (
    <Scroll label="Differences from the baseline">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col" className="numeric">
              Mean
            </th>
            <th scope="col" className="numeric">
              Baseline's
            </th>
            <th scope="col" className="numeric">
              Difference, 95 % interval
            </th>
            <th scope="col" className="numeric">
              p
            </th>
            <th scope="col">Smallest detectable difference</th>
            <th scope="col">Better, worse, same</th>
            <th scope="col" className="numeric">
              Flipped
            </th>
            <th scope="col">Tasks matched, left out</th>
            <th scope="col">Other differences</th>
          </tr>
        </thead>
        <tbody>
          {known.map((comparison) => (
            <SummaryRow key={comparison.run.id} comparison={comparison} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function SummaryRow({ comparison }: { readonly comparison: RunComparison }) {
  const { run, baseline, difference, differs } = comparison;
  const { ci95 } = difference;
  return (
    <tr>
      <th scope="row">
        <RunName id={run.id} /> <code className="soft">…{run.id.slice(-6)}</code>
      </th>
      <td className="numeric">{scoreText(run.mean)}</td>
      <td className="numeric">{scoreText(baseline.mean)}</td>
      <td className="numeric">
        <strong className={difference.mean < 0 ? "worse" : "better"}>{differenceText(difference.mean)}</strong>{" "}
        {ci95 !== null && `${differenceText(ci95[0])} to ${differenceText(ci95[1])}`}
      </td>
      <td className="numeric">{difference.p === null ? NOTHING : numberText(difference.p)}</td>
      <td>{detectableText(comparison)}</td>
      <td>
        {countText(comparison.wins)} better, {countText(comparison.losses)} worse, {countText(comparison.ties)} the same
        {comparison.mcnemar_p !== null && <span className="soft">; McNemar p {numberText(comparison.mcnemar_p)}</span>}
      </td>
      <td className="numeric">{countText(comparison.n_flipped)}</td>
      <td>
        {countText(comparison.n_matched)} matched
        {comparison.n_unmatched > 0 &&
          `; scored in the run only ${countText(comparison.n_only_run)}, in the baseline only ${countText(comparison.n_only_baseline)}`}
      </td>
      <td>{differs.join(", ") || "nothing"}</td>
    </tr>
  );
}

function detectableText({ detectable, difference }: RunComparison): string {
  if (detectable === undefined || detectable.effect === null) return NOTHING;
  const { effect, more_tasks } = detectable;
  const least = `±${scoreText(effect)}`;
  if (more_tasks === null || more_tasks === 0) return least;
  return `${least}; ${countText(more_tasks)} more tasks would detect ${differenceText(difference.mean)}`;
}

/** What the smallest detectable difference means. */
function Detectable({ known }: { readonly known: readonly RunComparison[] }) {
  const detectable = known.find((one) => one.detectable?.effect != null)?.detectable;
  if (detectable === undefined) return null;
  return (
    <p className="soft">
      The smallest detectable difference is the true difference that a test of these tasks would find with a probability
      of {percentText(detectable.power)}, if it wrongly finds a difference in {percentText(detectable.alpha)} of cases
      without one. Smaller true differences may be missed.
    </p>
  );
}
