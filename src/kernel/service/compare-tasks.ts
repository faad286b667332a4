/**
 * The tasks on which a run differs from at least one of several baselines, with the mean of each run. Only the ranges
 * of keys are read that the page needs.
 */
import type { CompareTasksQuery, TaskComparison, TaskComparisonList } from "../../contract/comparison.ts";
import type { RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { runObject } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { TaskMean } from "../messages/run-records.ts";
import { keyRanges } from "../run/report-sums.ts";
import { LISTED, metricRefusal, RANGE_STEPS, refuseAs, TASKS_AT_ONCE, taskTexts } from "./compared-tasks.ts";
import { lostRun, readRun } from "./read-run.ts";

interface FoundTask {
  readonly task: TaskMean;
  readonly others: readonly (TaskMean | undefined)[];
}

export async function compareTasks(
  env: Env,
  scope: Scope,
  id: string,
  query: CompareTasksQuery,
): Promise<Result<TaskComparisonList>> {
  const baselines = query.baselines.split(",");
  if (baselines.includes(id)) {
    return refuse("invalid_request", "baselines: names the run itself: choose other runs", "baselines");
  }
  const runs: RunView[] = [];
  for (const one of [id, ...baselines]) {
    const read = await readRun(env, scope, one);
    if (!read.ok) return one === id ? read : refuseAs(read, "baselines");
    runs.push(read.value);
  }
  const unknown = metricRefusal(runs, query.metric);
  if (unknown !== null) return unknown;
  const found = await findTasks(env, scope, runs, query);
  if (!found.ok) return found;
  const listed = found.value.slice(0, query.limit);
  const texts = await taskTexts(
    runObject(env, scope, id),
    listed.map(({ task }) => task),
  );
  if (texts === null) return lostRun(id);
  const data = listed.map((one) => viewOf(one, texts));
  const [first_id, last_id] = [data[0], data.at(-1)].map((one) => one?.task_key ?? null);
  return {
    ok: true,
    value: {
      object: "list",
      data,
      first_id: first_id ?? null,
      last_id: last_id ?? null,
      has_more: found.value.length > listed.length,
    },
  };
}

/** The tasks of the page in order of their keys, and one more if there is another page. `runs`: the run is the first. */
async function findTasks(
  env: Env,
  scope: Scope,
  runs: readonly RunView[],
  { metric, tasks, after = "", limit }: CompareTasksQuery,
): Promise<Result<readonly FoundTask[]>> {
  const subrequests = new Subrequests();
  const found: FoundTask[] = [];
  const most = Math.max(...runs.map(({ num_examples }) => num_examples));
  for (const range of keyRanges(Math.ceil((most * runs.length) / TASKS_AT_ONCE))) {
    if (range.to !== null && range.to <= after) continue;
    await PROCESS_SCHEDULER.spend(scope.orgId, RANGE_STEPS);
    const read = await subrequests.objectAll(runs, ({ id }) =>
      runObject(env, scope, id).taskMeans(metric === "reward" ? null : metric, range),
    );
    const lost = lostRefusal(runs, read);
    if (lost !== null) return lost;
    for (const one of differingTasks(read, tasks)) {
      if (one.task.task_key > after) found.push(one);
      if (found.length > limit) return { ok: true, value: found };
    }
  }
  return { ok: true, value: found };
}

/** Refuses if the object of a run has no `means`. */
function lostRefusal(runs: readonly RunView[], means: readonly (object | null)[]): Result<never> | null {
  const at = means.findIndex((of) => of == null);
  const id = runs[at]?.id;
  if (id === undefined) return null;
  return at === 0 ? lostRun(id) : refuseAs(lostRun(id), "baselines");
}

/** `means`: of each run, the run itself first, in order of keys. */
function* differingTasks(
  means: readonly (readonly TaskMean[] | null)[],
  kind: CompareTasksQuery["tasks"],
): Generator<FoundTask> {
  const [ours, ...theirs] = means;
  const maps = theirs.map((of) => new Map((of ?? []).map((task) => [task.task_key, task])));
  for (const task of ours ?? []) {
    const others = maps.map((of) => of.get(task.task_key));
    if (others.some((other) => other !== undefined && LISTED[kind](task, other))) yield { task, others };
  }
}

function viewOf({ task, others }: FoundTask, texts: ReadonlyMap<number, string>): TaskComparison {
  const { task_key, example_id, seq = 0 } = task;
  const side = ({ mean, rollout_id }: TaskMean) => ({ mean, rollout_id });
  return {
    ...{ task_key, task_text: texts.get(seq) ?? null, example_id, run: side(task) },
    baselines: others.map((other) => (other === undefined ? null : side(other))),
  };
}
