/** The tasks on which a run and the baseline differ, and the outputs of both for a selected task. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { ComparedTask, RunComparison } from "../../../contract/comparison.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { TaskName } from "../../components/task-name.tsx";
import type { Asked } from "./asked.ts";
import { OutputDiff } from "./output-diff.tsx";
import { RunName } from "./run-name.tsx";

const PAGE = 50;

interface TaskDifferencesProps {
  /** Whether the outputs of its first task are shown at once. */
  readonly isFirst: boolean;
  readonly asked: Asked;
  readonly comparison: RunComparison;
}

export function TaskDifferences({ asked, comparison, isFirst }: TaskDifferencesProps) {
  const { baseline, metric, kind } = asked;
  const { run } = comparison;
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey: ["compare", run.id, baseline, metric, kind, "tasks"],
    queryFn: ({ pageParam, signal }) =>
      api.runs.compare(run.id, { baseline, metric, tasks: kind, limit: PAGE, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const tasks = data?.pages.flatMap((page) => page.tasks) ?? [];
  return (
    <section>
      <h3>
        <RunName id={run.id} /> <code className="soft">…{run.id.slice(-6)}</code>
      </h3>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="tasks" />}
      {data !== undefined && tasks.length === 0 && <p>No matching tasks.</p>}
      {tasks.length > 0 && <TaskTable tasks={tasks} opensFirst={isFirst} />}
      {hasNextPage && (
        <p>
          <button type="button" disabled={isFetching} onClick={() => fetchNextPage().catch(reportError)}>
            More tasks
          </button>
        </p>
      )}
    </section>
  );
}

interface TaskTableProps {
  readonly tasks: readonly ComparedTask[];
  readonly opensFirst: boolean;
}

function TaskTable({ tasks, opensFirst }: TaskTableProps) {
  const [chosen, setOpen] = useState<string | null | undefined>(undefined);
  const open = chosen === undefined && opensFirst ? tasks[0]?.task_key : chosen;
  return (
    <Scroll label="Tasks">
      <table className="tasks">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col" className="numeric">
              Baseline
            </th>
            <th scope="col" className="numeric">
              Run
            </th>
            <th scope="col">Change</th>
            <th scope="col">Rollouts</th>
            <th scope="col">Outputs</th>
          </tr>
        </thead>
        {tasks.map((task) => (
          <tbody key={task.task_key}>
            <TaskRow
              task={task}
              open={open === task.task_key}
              onOpen={() => setOpen(open === task.task_key ? null : task.task_key)}
            />
            {open === task.task_key && (
              <tr>
                <td colSpan={6} className="outputs">
                  <OutputDiff baseline={task.baseline_rollout_id} run={task.rollout_id} />
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </Scroll>
  );
}

interface TaskRowProps {
  readonly task: ComparedTask;
  readonly open: boolean;
  readonly onOpen: () => void;
}

function TaskRow({ task, open, onOpen }: TaskRowProps) {
  const change = task.run === task.baseline ? "same" : task.run < task.baseline ? "worse" : "better";
  return (
    <tr>
      <th scope="row">
        {countText(task.example_id)} <TaskName task={task} keyCharacters={8} />
      </th>
      <td className="numeric">{scoreText(task.baseline)}</td>
      <td className="numeric">{scoreText(task.run)}</td>
      <td>
        <span className={change}>{{ same: "= the same", worse: "▼ worse", better: "▲ better" }[change]}</span>
      </td>
      <td>
        <Link to="/rollouts/$id" params={{ id: task.baseline_rollout_id }} search={{}}>
          baseline's rollout
        </Link>
        ,{" "}
        <Link to="/rollouts/$id" params={{ id: task.rollout_id }} search={{}}>
          run's rollout
        </Link>
      </td>
      <td>
        <button type="button" aria-expanded={open} onClick={onOpen}>
          {open ? "Hide" : "Show the difference"}
        </button>
      </td>
    </tr>
  );
}
