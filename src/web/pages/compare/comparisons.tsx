/** The paired differences of the runs, a row each, and their tasks. */
import { useQueries } from "@tanstack/react-query";
import type { RunComparison } from "../../../contract/comparison.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { type Asked, type ComparedProps, KINDS } from "./asked.ts";
import { Summary } from "./summary.tsx";
import { TaskList } from "./task-list.tsx";

export function Comparisons({ asked, runs }: ComparedProps) {
  const { first, others, metric, role } = asked;
  const queries = useQueries({
    queries: others.map((other) => {
      const [run, baseline] = role === "candidate" ? [first, other] : [other, first];
      return {
        queryKey: ["compare", run, baseline, metric],
        queryFn: ({ signal }: { signal: AbortSignal }) =>
          api.runs.compare(run, { baseline, metric, limit: 1 }, { signal }),
      };
    }),
  });
  const isPending = queries.some((query) => query.isPending);
  // The list of tasks needs all its runs: one that could not be read is left out.
  const listed = { ...asked, others: others.filter((other) => runs.some(({ id }) => id === other)) };
  const known = queries.flatMap(({ data }): RunComparison[] => (data === undefined ? [] : [data]));
  return (
    <>
      <MetricChoice asked={asked} runs={runs} />
      {queries.map(({ error, refetch }, index) => {
        if (error === null) return null;
        return <ErrorNote key={others[index]} error={error} onRetry={() => refetch()} />;
      })}
      {isPending && <Loading what="the comparisons" />}
      {known.length > 0 && (
        <>
          <Summary known={known} asked={asked} runs={runs} isComplete={!isPending} />
          <h2>Tasks</h2>
          <TaskKind asked={asked} />
          <TaskList key={[first, ...listed.others, metric, asked.kind].join()} asked={listed} runs={runs} />
        </>
      )}
    </>
  );
}

/** The scores that all reports have. */
function MetricChoice({ asked: { first, role, metric }, runs }: ComparedProps) {
  const [, change] = useAddress();
  const names = runs.map(({ report }) => Object.keys(report.metrics));
  const shared = (names[0] ?? []).filter((name) => names.every((of) => of.includes(name)));
  const one = runs.find(({ id }) => id === first);
  return (
    <p className="row">
      <label className="row">
        Compare by
        <select value={metric} onChange={(event) => change({ metric: event.target.value })}>
          <option>reward</option>
          {shared.map((name) => (
            <option key={name}>{name}</option>
          ))}
          {metric !== "reward" && !shared.includes(metric) && <option>{metric}</option>}
        </select>
      </label>
      {one !== undefined && (
        <span className="soft">
          of the {role} <Shown text={`${one.environment.id}@${one.environment.version} ${one.model}`} />, mean reward{" "}
          {scoreText(one.report.reward.mean)} of {countText(one.report.reward.n_rollouts)} scored rollouts
        </span>
      )}
    </p>
  );
}

function TaskKind({ asked: { kind, others, role } }: { readonly asked: Asked }) {
  const [, change] = useAddress();
  const against = role === "candidate" ? "baseline" : "candidate";
  return (
    <p className="row">
      <label className="row">
        Show the tasks that
        <select value={kind} onChange={(event) => change({ only: event.target.value })}>
          {KINDS.map(({ kind: one, description }) => (
            <option key={one} value={one}>
              {description}
            </option>
          ))}
        </select>
      </label>
      {others.length > 1 && <span className="soft">against at least one {against}</span>}
    </p>
  );
}
