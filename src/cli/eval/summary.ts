/** Describes an ended run and its comparison with another, as text and as the object of --json. */

import type { ComparedTask, RunComparison } from "../../contract/comparison.ts";
import { allCounts, countText, intervalText, pText, signedText } from "../terminal/format.ts";
import type { EndedRun } from "../terminal/results.ts";
import { columns, safeDetails } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { type GateResult, type Judgement, NOT_JUDGED } from "./gates.ts";

const HEADER = ["task", "baseline", "run", "", "rollout", "rollout of the baseline"];

const WIDEST = { task: 44 };

const NO_JUDGES = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, calls: 0 };

/** The object of `rollcall eval --json` for an ended run. Scripts depend on every name here. */
export function evalSummary(
  { run, reasons }: Pick<EndedRun, "run" | "reasons">,
  seconds: number,
  resultsPath: string | null,
  { gates, comparison }: Judgement = NOT_JUDGED,
) {
  const { counts, report } = run;
  const { judge = NO_JUDGES, ...policy } = report.usage;
  return {
    run_id: run.id,
    status: run.status,
    error: run.error,
    environment: `${run.environment.id}@${run.environment.version}`,
    model: run.model,
    num_examples: run.num_examples,
    rollouts_per_example: run.rollouts_per_example,
    counts: allCounts(counts),
    failed_by_class: counts.failed,
    cancelled_by_reason: counts.cancelled,
    reasons,
    reward: report.reward,
    max_reward: run.max_reward ?? null,
    metrics: report.metrics,
    pass_at_k: report.pass_at_k,
    pass_hat_k: report.pass_hat_k,
    pass_k: report.pass_k ?? null,
    usage: { policy, judge },
    cost: run.cost,
    max_cost_micros: run.max_cost_micros,
    counted_micros: report.counted_micros ?? null,
    lost_reservations: report.lost_reservations ?? null,
    turns: report.turns,
    seconds: Math.round(seconds * 1000) / 1000,
    results_path: resultsPath,
    gates,
    comparison,
  };
}

/** A comparison of two runs as text. `why`: how the baseline was found. */
export function comparisonText(comparison: RunComparison, room: number, why?: string): string {
  const { run, baseline, metric, difference, n_matched, differs, mcnemar_p: mcnemar } = comparison;
  const test =
    difference.t === null || difference.p === null ? "" : `; t ${difference.t.toFixed(2)}, p ${pText(difference.p)}`;
  const interval = difference.ci95 === null ? "" : ` (95 %: ${intervalText(difference.ci95)}${test})`;
  const se = difference.se === null ? "" : ` ± ${difference.se.toFixed(3)}`;
  const fields = {
    run: `${run.id}  ${run.environment} ${run.model}`,
    baseline: `${baseline.id}  ${baseline.environment} ${baseline.model}${why ? `: ${why}` : ""}`,
    metric,
    difference: `${signedText(difference.mean)}${se}${interval}`,
    detectable: detectableText(comparison),
    means: `${run.mean?.toFixed(3) ?? "–"}, baseline ${baseline.mean?.toFixed(3) ?? "–"}`,
    matched: `${countText(n_matched)} tasks${unmatchedText(comparison)}`,
    tasks: `${countText(comparison.wins)} better, ${countText(comparison.losses)} worse, ${countText(comparison.ties)} the same${mcnemar === null ? "" : `; McNemar p ${pText(mcnemar)}`}`,
    "differ in": differs.join(", ") || null,
  };
  return [safeDetails(fields), tasksText(comparison, room)].filter((part) => part !== "").join("\n\n");
}

export function judgementsText(gates: readonly GateResult[]): string {
  const rows = gates.map(({ gate, verdict, message }) => {
    return [gate.replace("_", "-"), verdict, safeLine(message)];
  });
  return columns(["gate", "verdict", "why"], rows);
}

/** The smallest difference that the tasks can detect, and how many more tasks would detect the observed one. */
export function detectableText({
  detectable,
  difference,
}: Pick<RunComparison, "detectable" | "difference">): string | null {
  if (detectable === undefined || detectable.effect === null) return null;
  const { alpha, power, effect, more_tasks } = detectable;
  const least = `from ±${effect.toFixed(3)} (alpha ${alpha}, power ${power})`;
  if (more_tasks === null || more_tasks === 0) return least;
  return `${least}; ${countText(more_tasks)} more tasks would detect ${signedText(difference.mean)}`;
}

export function unmatchedText({
  n_only_run,
  n_only_baseline,
  n_unmatched,
}: Pick<RunComparison, "n_only_run" | "n_only_baseline" | "n_unmatched">): string {
  if (n_unmatched === 0) return "";
  return `; left out: ${countText(n_only_run)} scored in the run only, ${countText(n_only_baseline)} in the baseline only`;
}

function tasksText({ tasks, n_flipped, next }: RunComparison, room: number): string {
  if (tasks.length === 0) return "";
  // Sorted by what got worse, because that is what the reader looks for.
  const rows = tasks.toSorted((a, b) => a.run - a.baseline - (b.run - b.baseline)).map(rowOf);
  const table = columns(HEADER, rows, room, WIDEST);
  const more = `${countText(n_flipped)} tasks flipped; these are the first ${tasks.length}`;
  return next === null ? table : `${table}\n${more}`;
}

function rowOf(task: ComparedTask): string[] {
  const change = task.run < task.baseline ? "worse" : "better";
  const means = [task.baseline.toFixed(3), task.run.toFixed(3)];
  const rollouts = [task.rollout_id, task.baseline_rollout_id];
  const name = task.task_text === null ? "" : ` ${task.task_text}`;
  return [`${task.example_id}${name}`, ...means, change, ...rollouts].map(safeLine);
}
