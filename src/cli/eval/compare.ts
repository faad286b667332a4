/** `rollcall compare`: a run and one or several baselines, as text, as an object, and as a gate. */
import { COMPARED_TASKS, type RunComparison, type TaskComparison } from "../../contract/comparison.ts";
import { type CostDifference, costDifference } from "../../contract/cost-difference.ts";
import { adjustByHolm } from "../../contract/holm.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../contract/run.ts";
import type { CompareRunsQuery, Page } from "../../sdk/options.ts";
import type { CommandLine, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform, type Session } from "../on-platform.ts";
import { countText, dollarsText, intervalText, pText, signedText } from "../terminal/format.ts";
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
  const asked: Asked = {
    ...{ run, baselines, metric: line.text("metric"), limit: line.count("limit", 1), after: line.text("after") },
    tasks: COMPARED_TASKS.find((one) => one === line.text("tasks")),
    gates: [...(line.on("fail-if-worse") ? [null] : []), ...(maxDrop === null ? [] : [maxDrop])],
  };
  return onPlatform(line, (session) => (baselines.length > 1 ? compareSeveral : compareOne)(asked, session));
}

interface Asked extends Omit<CompareRunsQuery, "baseline"> {
  readonly run: string;
  readonly baselines: readonly string[];
  /** The allowed drop of each gate; null: only a significant drop fails. Empty: the exit code depends on no difference. */
  readonly gates: readonly (number | null)[];
}

async function compareOne(
  { run, baselines, gates: drops, ...query }: Asked,
  { client, signal, term: { room } }: Session,
) {
  const comparison = await client.runs.compare(run, { baseline: baselines[0] ?? "", ...query }, { signal });
  const gates = judged([comparison], drops);
  const json = drops.length === 0 ? comparison : { ...comparison, gates };
  return { json, exit: exitOf(gates), text: () => withGates(comparisonText(comparison, room), gates) };
}

async function compareSeveral(
  { run, baselines, gates: drops, ...query }: Asked,
  { client, signal, term: { room } }: Session,
) {
  const comparisons: RunComparison[] = [];
  const theirs: RunView[] = [];
  for (const baseline of baselines) {
    comparisons.push(await client.runs.compare(run, { baseline, metric: query.metric, limit: 1 }, { signal }));
    theirs.push(await client.runs.get(baseline, { signal }));
  }
  const rows = rowsOf(comparisons, await client.runs.get(run, { signal }), theirs);
  const list = await client.runs.compareTasks(run, { baselines, ...query }, { signal });
  const gates = judged(comparisons, drops);
  const json = { object: "comparisons", data: rows, tasks: list, ...(drops.length > 0 && { gates }) };
  return { json, exit: exitOf(gates), text: () => withGates(severalText(rows, list, room), gates) };
}

function judged(comparisons: readonly RunComparison[], drops: Asked["gates"]): readonly GateResult[] {
  return drops.flatMap((maxDrop) => judgeDifferences(comparisons, maxDrop));
}

function exitOf(gates: readonly GateResult[]): ExitCode {
  return exitOfGates(gates) ?? EXIT.good;
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

/** Scripts depend on these names. */
type Row = Omit<RunComparison, "tasks" | "next"> & {
  readonly p_holm: number | null;
  /** In micro-dollars; null if a part of the cost of a run is unknown. */
  readonly cost_difference: CostDifference | null;
};

/** Without their own pages of tasks, which one list replaces. `theirs`: the baselines in their order. */
function rowsOf(comparisons: readonly RunComparison[], ours: RunView, theirs: readonly RunView[]): Row[] {
  const adjusted = adjustByHolm(comparisons.map(({ difference }) => difference.p));
  return comparisons.map(({ tasks: _tasks, next: _next, ...comparison }, at) => {
    const baseline = theirs[at];
    return {
      ...comparison,
      p_holm: adjusted[at] ?? null,
      cost_difference: baseline === undefined ? null : costDifference(ours, baseline),
    };
  });
}

const HEADER = ["baseline", "mean", "run", "difference", "95 %", "p", "p by Holm", "better", "worse", "same"];

function severalText(comparisons: readonly Row[], list: Page<TaskComparison>, room: number): string {
  const [first] = comparisons;
  if (first === undefined) return "";
  const { run, metric } = first;
  const head = safeDetails({ run: `${run.id}  ${run.environment} ${run.model}`, metric });
  const rows = comparisons.map((one) => {
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

/** What the baseline is, what its comparison can detect, how much more the run costs, and what else differs. */
function noteText(comparison: Row): string {
  const { baseline, differs, n_matched } = comparison;
  const detectable = detectableText(comparison);
  return [
    `${baseline.environment} ${baseline.model}`,
    `${countText(n_matched)} tasks matched${unmatchedText(comparison)}`,
    ...(detectable === null ? [] : [`detectable ${detectable}`]),
    ...(comparison.cost_difference === null ? [] : [costText(comparison.cost_difference)]),
    `differs in ${differs.join(", ") || "nothing"}`,
  ].join("; ");
}

function costText({ all, per_rollout }: CostDifference): string {
  const signed = (micros: number) => `${micros > 0 ? "+" : ""}${dollarsText(Math.round(micros))}`;
  const each = per_rollout === null ? "" : ` (${signed(per_rollout)} per rollout)`;
  return `costs ${signed(all)}${each}`;
}

function tasksText(
  comparisons: readonly Row[],
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
