/**
 * Compares two runs task by task. Tasks are matched by the content hash of their rows, so order, seed and position do
 * not matter.
 *
 * Both runs are read in the same ranges of keys, about `TASKS_AT_ONCE` tasks of both together: keys are hashes, so
 * ranges of equal size have about equally many tasks. Two runs of 100,000 tasks take six calls to their objects, and one range of each
 * run is in memory. A run that has not ended is compared by what it has scored when its range is read.
 */
import type { ComparedTask, CompareQuery, RunComparison } from "../../contract/comparison.ts";
import type { RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import { PairedDifferences } from "../../core/statistics/paired.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { runObject } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { TaskMean } from "../messages/run-records.ts";
import { keyRanges } from "../run/report-sums.ts";
import { flips, LISTED, metricRefusal, RANGE_STEPS, refuseAs, TASKS_AT_ONCE, taskTexts } from "./compared-tasks.ts";
import { lostRun, readRun } from "./read-run.ts";

export async function compareRuns(
  env: Env,
  scope: Scope,
  id: string,
  query: CompareQuery,
): Promise<Result<RunComparison>> {
  if (id === query.baseline) {
    return refuse("invalid_request", "baseline: is the run itself: choose another run", "baseline");
  }
  const run = await readRun(env, scope, id);
  if (!run.ok) return run;
  const baseline = await readRun(env, scope, query.baseline);
  if (!baseline.ok) return refuseAs(baseline, "baseline");
  const sides = { run: run.value, baseline: baseline.value };
  const unknown = metricRefusal([run.value, baseline.value], query.metric);
  if (unknown !== null) return unknown;
  const tally = new Tally(query);
  const subrequests = new Subrequests();
  const metric = query.metric === "reward" ? null : query.metric;
  const tasks = Math.max(run.value.num_examples, baseline.value.num_examples);
  for (const range of keyRanges(Math.ceil((2 * tasks) / TASKS_AT_ONCE))) {
    await PROCESS_SCHEDULER.spend(scope.orgId, RANGE_STEPS);
    const [ours, theirs] = await subrequests.objectAll([id, query.baseline], (of) =>
      runObject(env, scope, of).taskMeans(metric, range),
    );
    if (ours == null) return lostRun(id);
    if (theirs == null) return refuseAs(lostRun(query.baseline), "baseline");
    tally.add(ours, theirs);
  }
  const texts = await taskTexts(runObject(env, scope, id), tally.listed);
  return texts === null ? lostRun(id) : tally.comparison(sides, query.metric, texts);
}

type ListedTask = Omit<ComparedTask, "task_text"> & Pick<TaskMean, "seq">;

interface Sides {
  readonly run: RunView;
  readonly baseline: RunView;
}

class Tally {
  readonly #paired = new PairedDifferences();
  readonly #page: Pick<CompareQuery, "after" | "limit" | "tasks">;
  readonly #found: ListedTask[] = [];
  #onlyRun = 0;
  #onlyBaseline = 0;
  #flipped = 0;

  constructor(page: Pick<CompareQuery, "after" | "limit" | "tasks">) {
    this.#page = page;
  }

  /** The tasks on the page. */
  get listed(): readonly ListedTask[] {
    return this.#found.slice(0, this.#page.limit);
  }

  /** Both lists are in order of keys and of the same range; ranges come in order. */
  add(ours: readonly TaskMean[], theirs: readonly TaskMean[]): void {
    const byKey = new Map(theirs.map((task) => [task.task_key, task]));
    let matched = 0;
    for (const task of ours) {
      const other = byKey.get(task.task_key);
      if (other === undefined) continue;
      matched += 1;
      this.#paired.add(task.mean, other.mean);
      if (flips(task, other)) this.#flipped += 1;
      if (LISTED[this.#page.tasks](task, other)) this.#list(task, other);
    }
    this.#onlyRun += ours.length - matched;
    this.#onlyBaseline += theirs.length - matched;
  }

  #list(task: TaskMean, other: TaskMean): void {
    // One more than the page size shows that there is another page.
    if (task.task_key <= (this.#page.after ?? "") || this.#found.length > this.#page.limit) return;
    const { task_key, example_id, rollout_id, mean, seq } = task;
    this.#found.push({
      ...{ task_key, run: mean, baseline: other.mean, ...(seq !== undefined && { seq }) },
      ...{ example_id, rollout_id, baseline_rollout_id: other.rollout_id },
    });
  }

  comparison({ run, baseline }: Sides, metric: string, texts: ReadonlyMap<number, string>): Result<RunComparison> {
    const { mean, ...spread } = this.#paired.result();
    if (mean === null) return refuse("conflict", this.#nothingInCommon(run, baseline), "baseline");
    const { first, second } = this.#paired.means;
    const { pairs, wins, losses, ties } = this.#paired;
    const tasks = this.listed.map(({ seq = 0, ...task }) => ({ ...task, task_text: texts.get(seq) ?? null }));
    const more = this.#found.length > tasks.length;
    const value: RunComparison = {
      object: "comparison",
      metric,
      run: sideOf(run, first),
      baseline: sideOf(baseline, second),
      differs: differencesOf(run, baseline),
      n_matched: pairs,
      n_unmatched: this.#onlyRun + this.#onlyBaseline,
      n_only_run: this.#onlyRun,
      n_only_baseline: this.#onlyBaseline,
      difference: { mean, ...spread },
      detectable: this.#paired.detectable(),
      ...{ wins, losses, ties },
      mcnemar_p: this.#paired.mcnemarP(),
      n_flipped: this.#flipped,
      tasks,
      next: more ? (tasks.at(-1)?.task_key ?? null) : null,
    };
    return { ok: true, value };
  }

  #nothingInCommon(run: RunView, baseline: RunView): string {
    const scored = (count: number, { id, environment }: RunView) => `${count} of ${id} (${environment.id})`;
    return (
      "no task is scored in both runs, so there is nothing to compare: " +
      `${scored(this.#onlyRun, run)}, ${scored(this.#onlyBaseline, baseline)} are scored`
    );
  }
}

function sideOf(run: RunView, mean: number | null): RunComparison["run"] {
  const { id, status, environment, model, created_at, report } = run;
  const at = `${environment.id}@${environment.version}`;
  return { id, status, environment: at, model, created_at, mean, reward: report.reward };
}

/**
 * Fields that may explain a difference. Endpoints are compared by address: an inline endpoint has a new id in each run.
 */
const COMPARED_FIELDS = [
  "environment",
  "environment_args",
  "model",
  "judges",
  "sampling",
  "rollouts_per_example",
  "seed",
  "limits",
] as const;

function differencesOf(run: RunView, baseline: RunView): string[] {
  const other = COMPARED_FIELDS.filter((field) => JSON.stringify(run[field]) !== JSON.stringify(baseline[field]));
  const moved = run.endpoint?.base_url !== baseline.endpoint?.base_url || run.fleet?.id !== baseline.fleet?.id;
  return moved ? [...other, "endpoint"] : other;
}
