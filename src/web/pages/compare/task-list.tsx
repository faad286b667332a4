/** The listed tasks, a column for each run. A click on a task shows the outputs of all runs. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { TaskComparison } from "../../../contract/comparison.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, differenceText, NOTHING, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { TaskName } from "../../components/task-name.tsx";
import { type ComparedProps, kindForFirst } from "./asked.ts";
import { Outputs, type Side } from "./outputs.tsx";
import { shortNameOf } from "./short-name.ts";

const PAGE = 50;

export function TaskList({ asked, runs }: ComparedProps) {
  const { first, others, metric } = asked;
  const kind = kindForFirst(asked);
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["compare", first, others, metric, kind, "tasks"],
    queryFn: ({ pageParam, signal }) => {
      const query = { baselines: others, metric, tasks: kind, limit: PAGE, after: pageParam };
      return api.runs.compareTasks(first, query, { signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ has_more, last_id }) => (has_more ? (last_id ?? undefined) : undefined),
  });
  const tasks = data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="tasks" />}
      {data !== undefined && tasks.length === 0 && <p>No matching tasks.</p>}
      {tasks.length > 0 && <TaskTable tasks={tasks} asked={asked} runs={runs} />}
      {hasNextPage && (
        <p>
          <button type="button" disabled={isFetching} onClick={() => fetchNextPage().catch(reportError)}>
            More tasks
          </button>
        </p>
      )}
    </>
  );
}

interface TaskTableProps extends ComparedProps {
  readonly tasks: readonly TaskComparison[];
}

function TaskTable({ tasks, asked, runs }: TaskTableProps) {
  // The outputs of the first task are shown until the reader chooses.
  const [chosen, setChosen] = useState<string | null | undefined>(undefined);
  const open = chosen === undefined ? tasks[0]?.task_key : chosen;
  const { first, others, role } = asked;
  const columns = [first, ...others];
  return (
    <div className="task-table">
      <Scroll label="Tasks">
        <table>
          <thead>
            <tr>
              <th scope="col">Task</th>
              {columns.map((id) => (
                <th key={id} scope="col" className="run-column">
                  <span className="second soft">
                    {(id === first) === (role === "candidate") ? "candidate" : "baseline"}
                  </span>
                  <Shown text={shortNameOf(runs, id)} most={60} />
                </th>
              ))}
            </tr>
          </thead>
          {tasks.map((task) => (
            <tbody key={task.task_key}>
              <TaskRow
                task={task}
                asked={asked}
                isOpen={open === task.task_key}
                onOpen={() => setChosen(open === task.task_key ? null : task.task_key)}
              />
              {open === task.task_key && (
                <tr>
                  <td colSpan={columns.length + 1} className="outputs">
                    <Outputs sides={sidesOf(task, { asked, runs })} asked={asked} />
                  </td>
                </tr>
              )}
            </tbody>
          ))}
        </table>
      </Scroll>
    </div>
  );
}

/** The runs with a rollout of the task: the baselines, then the candidates. */
function sidesOf({ run, baselines }: TaskComparison, { asked, runs }: ComparedProps): readonly Side[] {
  const { first, others, role } = asked;
  const side = (id: string, rollout: string | undefined): Side[] =>
    rollout === undefined ? [] : [{ run: id, name: shortNameOf(runs, id), rollout }];
  const theirs = others.flatMap((id, at) => side(id, baselines[at]?.rollout_id));
  const ours = side(first, run.rollout_id);
  return role === "candidate" ? [...theirs, ...ours] : [...ours, ...theirs];
}

interface TaskRowProps {
  readonly task: TaskComparison;
  readonly asked: ComparedProps["asked"];
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}

function TaskRow({ task, asked: { others, role }, isOpen, onOpen }: TaskRowProps) {
  const { run, baselines, example_id } = task;
  return (
    <tr>
      <th scope="row">
        <button type="button" className="link task-button" aria-expanded={isOpen} onClick={onOpen}>
          {isOpen ? "▾" : "▸"} {countText(example_id)} <TaskName task={task} keyCharacters={8} />
        </button>
      </th>
      <td>
        <Mean of={run} />
      </td>
      {others.map((id, at) => {
        const other = baselines[at] ?? null;
        if (other === null) {
          return (
            <td key={id}>
              {NOTHING}
              <span className="visually-hidden"> not scored</span>
            </td>
          );
        }
        const change = role === "candidate" ? run.mean - other.mean : other.mean - run.mean;
        return (
          <td key={id}>
            <Mean of={other} /> <Change by={change} />
          </td>
        );
      })}
    </tr>
  );
}

function Mean({ of: { mean, rollout_id } }: { readonly of: TaskComparison["run"] }) {
  return (
    <Link to="/rollouts/$id" params={{ id: rollout_id }} search={{}} title="its first scored rollout">
      {scoreText(mean)}
    </Link>
  );
}

/** How much better the candidate is. */
function Change({ by }: { readonly by: number }) {
  const text = differenceText(by);
  if (Number(text) === 0) return <span className="second soft">= the same</span>;
  return (
    <span className={`second ${by < 0 ? "worse" : "better"}`}>
      {by < 0 ? "▼" : "▲"} {text}
      <span className="visually-hidden">: the candidate is {by < 0 ? "worse" : "better"}</span>
    </span>
  );
}
