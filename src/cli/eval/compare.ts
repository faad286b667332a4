/** `rollcall compare`: a run and one or several baselines, as text, as an object, and as a gate. */
import { COMPARED_TASKS, type RunComparison, type TaskComparison } from "../../contract/comparison.ts";
import { adjustByHolm } from "../../contract/holm.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Page } from "../../sdk/options.ts";
import type { CommandLine, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, intervalText, pText, signedText } from "../terminal/format.ts";
import { columns, safeDetails } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { judgeDifferences } from "./baseline-gate.ts";
import { exitOfGates, type GateResult } from "./gates.ts";
import { comparisonText, detectableText, judgementsText, unmatchedText } from "./summary.ts";

type CompareLine = CommandLine<
  "metric" | "limit" | "tasks" | "after" | "fail-if-worse" | "max-drop" | keyof typeof PLATFORM_FLAGS
>;

export function compareCommand(line: CompareLine): Promise<ExitCode> {
  const [run, ...baselines] = line.positionals;
  if (run === undefined || baselines.length === 0) {
    throw usageError("two or more runs are required: the run, then its baselines");
  }
  if (baselines.length > LIMITS.comparedBaselines) {
    throw usageError(`at most ${LIMITS.comparedBaselines} baselines, not ${baselines.length}`);
  }
  const twice = baselines.find((one, at) => baselines.indexOf(one) !== at);
  if (twice !== undefined) throw usageError(`the baseline ${twice} is given twice`);
  const maxDrop = maxDropOf(line);
  const isGate = line.on("fail-if-worse") || maxDrop !== null;
  const [metric, limit, after] = [line.text("metric"), line.count("limit", 1), line.text("after")];
  const tasks = COMPARED_TASKS.find((one) => one === line.text("tasks"));
  return onPlatform(line, async ({ client, signal, term: { room } }) => {
    const isSeveral = baselines.length > 1;
    const comparisons: RunComparison[] = [];
    for (const baseline of baselines) {
      const page = isSeveral ? { limit: 1 } : { limit, after, tasks };
      comparisons.push(await client.runs.compare(run, { baseline, metric, ...page }, { signal }));
    }
    const gates = isGate ? judgeDifferences(comparisons, maxDrop) : [];
    const exit = exitOfGates(gates) ?? EXIT.good;
    const [only] = comparisons;
    if (!isSeveral && only !== undefined) {
      const json = isGate ? { ...only, gates } : only;
      return { json, exit, text: () => withGates(comparisonText(only, room), gates) };
    }
    const list = await client.runs.compareTasks(run, { baselines, metric, limit, after, tasks }, { signal });
    const json = { object: "comparisons", data: withCorrection(comparisons), tasks: list, ...(isGate && { gates }) };
    return { json, exit, text: () => withGates(severalText(comparisons, list, room), gates) };
  });
}

function maxDropOf(line: CompareLine): number | null {
  const maxDrop = line.number("max-drop") ?? null;
  if (maxDrop !== null && maxDrop < 0) {
    throw usageError("--max-drop: must be 0 or more: 0.02 allows a drop of 0.02", "max-drop");
  }
  return maxDrop;
}

function withGates(text: string, gates: readonly GateResult[]): string {
  return gates.length === 0 ? text : `${text}\n\n${judgementsText(gates)}`;
}

/** Without their own pages of tasks, which one list replaces. */
function withCorrection(comparisons: readonly RunComparison[]) {
  const adjusted = adjustByHolm(comparisons.map(({ difference }) => difference.p));
  return comparisons.map(({ tasks: _tasks, next: _next, ...comparison }, at) => ({
    ...comparison,
    p_holm: adjusted[at] ?? null,
  }));
}

const HEADER = ["baseline", "mean", "run", "difference", "95 %", "p", "p by Holm", "better", "worse", "same"];

function severalText(comparisons: readonly RunComparison[], list: Page<TaskComparison>, room: number): string {
  const [first] = comparisons;
  if (first === undefined) return "";
  const { run, metric } = first;
  const head = safeDetails({ run: `${run.id}  ${run.environment} ${run.model}`, metric });
  const rows = withCorrection(comparisons).map((one) => {
    const { mean, ci95, p } = one.difference;
    const means = [one.baseline.mean, one.run.mean].map((of) => of?.toFixed(3) ?? "–");
    const tests = [p, one.p_holm].map((of) => (of === null ? "–" : pText(of)));
    const tasks = [one.wins, one.losses, one.ties].map(countText);
    return [one.baseline.id, ...means, signedText(mean), ci95 === null ? "–" : intervalText(ci95), ...tests, ...tasks];
  });
  const notes = safeDetails(Object.fromEntries(comparisons.map((one) => [one.baseline.id, noteText(one)])));
  const parts = [head, columns(HEADER, rows, room), notes, tasksText(comparisons, list, room)];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** What the baseline is, what its comparison can detect, and what else differs. */
function noteText(comparison: RunComparison): string {
  const { baseline, differs, n_matched } = comparison;
  const detectable = detectableText(comparison);
  return [
    `${baseline.environment} ${baseline.model}`,
    `${countText(n_matched)} tasks matched${unmatchedText(comparison)}`,
    ...(detectable === null ? [] : [`detectable ${detectable}`]),
    `differs in ${differs.join(", ") || "nothing"}`,
  ].join("; ");
}

function tasksText(
  comparisons: readonly RunComparison[],
  { data, has_more, last_id }: Page<TaskComparison>,
  room: number,
): string {
  if (data.length === 0) return "";
  // A column is named by the end of the id: whole ids do not fit.
  const header = ["task", "run", ...comparisons.map(({ baseline }) => `…${baseline.id.slice(-6)}`), "rollout"];
  const table = columns(header, data.map(rowOf), room, { task: 44 });
  return has_more ? `${table}\nThere are more: --after ${last_id}` : table;
}

function rowOf({ task_text, example_id, run, baselines }: TaskComparison): string[] {
  const name = task_text === null ? "" : ` ${task_text}`;
  const means = [run, ...baselines].map((side) => side?.mean.toFixed(3) ?? "–");
  return [`${example_id}${name}`, ...means, run.rollout_id].map(safeLine);
}
