/** A comparison of two runs, and the verdicts of gates, as text. */
import type { FlippedTask, RunComparison } from "../../contract/comparison.ts";
import { columns, details } from "../terminal/columns.ts";
import { countText, intervalText, signedText } from "../terminal/format.ts";
import { safeLine } from "../terminal/safe-text.ts";
import type { Verdict } from "./gates.ts";

const HEADER = ["task", "baseline", "run", "", "rollout", "rollout of the baseline"];

/** `why`: how the baseline was found. */
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
    means: `${run.mean?.toFixed(3) ?? "–"}, baseline ${baseline.mean?.toFixed(3) ?? "–"}`,
    matched: `${countText(n_matched)} tasks${unmatchedText(comparison)}`,
    tasks: `${countText(comparison.wins)} better, ${countText(comparison.losses)} worse, ${countText(comparison.ties)} the same${mcnemar === null ? "" : `; McNemar p ${pText(mcnemar)}`}`,
    "differ in": differs.join(", ") || null,
  };
  const lines = Object.entries(fields).map(([name, value]) => {
    return [name, value === null ? null : safeLine(value)] as const;
  });
  return [details(Object.fromEntries(lines)), flippedText(comparison, room)].filter((part) => part !== "").join("\n\n");
}

export function verdictsText(gates: readonly Verdict[]): string {
  const rows = gates.map(({ gate, verdict, message }) => {
    return [gate.replace("_", "-"), verdict, safeLine(message)];
  });
  return columns(["gate", "verdict", "why"], rows);
}

function unmatchedText({ n_only_run, n_only_baseline, n_unmatched }: RunComparison): string {
  if (n_unmatched === 0) return "";
  return `; left out: ${countText(n_only_run)} scored in the run only, ${countText(n_only_baseline)} in the baseline only`;
}

function flippedText({ flipped, n_flipped, next }: RunComparison, room: number): string {
  if (flipped.length === 0) return "";
  // What got worse is what one looks for.
  const rows = flipped.toSorted((a, b) => a.run - a.baseline - (b.run - b.baseline)).map(rowOf);
  const table = columns(HEADER, rows, room);
  const more = `${countText(n_flipped)} tasks flipped; these are the first ${flipped.length}`;
  return next === null ? table : `${table}\n${more}`;
}

function rowOf(task: FlippedTask): string[] {
  const change = task.run < task.baseline ? "worse" : "better";
  const means = [task.baseline.toFixed(3), task.run.toFixed(3)];
  const rollouts = [task.rollout_id, task.baseline_rollout_id];
  return [String(task.example_id), ...means, change, ...rollouts].map(safeLine);
}

function pText(p: number): string {
  return p < 0.0001 ? "< 0.0001" : p.toPrecision(2);
}
