/**
 * Writes an eval as Markdown, for the summary of a build or a comment on a pull request: the result, the gates, the
 * comparison, and the first tasks that changed or did not pass.
 *
 * Its size is bounded, because GitHub takes at most 65,536 characters in a comment.
 */
import { writeFileSync } from "node:fs";
import type { RunComparison } from "../../contract/comparison.ts";
import type { RunView } from "../../contract/run.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import {
  countText,
  endedCounts,
  estimateText,
  intervalText,
  meanIntervalText,
  namedCounts,
  sharesText,
  signedText,
} from "../terminal/format.ts";
import { foldedPart, inlineCode, markdownTable } from "../terminal/markdown.ts";
import { capText, costText } from "../terminal/results.ts";
import type { Judgement } from "./gates.ts";
import type { TaskCase } from "./task-cases.ts";

/** Rows of a table of tasks. */
const TASKS = 10;
const METRICS = 15;
/** Characters of the error of a run. */
const ERROR = 300;

interface Ended {
  readonly run: RunView;
  readonly cases: readonly TaskCase[];
  readonly judgement: Judgement;
  readonly exit: ExitCode;
}

export function writeMarkdown(file: string, ended: Ended): void {
  try {
    writeFileSync(file, evalMarkdown(ended));
  } catch (error) {
    throw usageError(`--markdown: ${error instanceof Error ? error.message : error}`, "markdown");
  }
}

export function evalMarkdown({ run, cases, judgement, exit }: Ended): string {
  const { gates, comparison } = judgement;
  const verdicts = gates.map(({ gate, verdict, message }) => [gate.replace("_", "-"), verdict, inlineCode(message)]);
  const parts = [
    `### ${inlineCode(`${run.environment.id}@${run.environment.version}`)}: ${verdictText(run, judgement, exit)}`,
    markdownTable(["model", inlineCode(run.model)], resultRows(run)),
    markdownTable(["gate", "verdict", "why"], verdicts),
    comparison === null ? "" : comparisonPart(comparison),
    casesPart(cases),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function verdictText(run: RunView, { gates }: Judgement, exit: ExitCode): string {
  if (exit === EXIT.gate) return "a gate failed";
  if (exit === EXIT.inconclusive) return "inconclusive";
  if (exit === EXIT.good) return gates.length > 0 ? "passed" : "completed";
  return run.status === "completed" ? "failed: some rollouts have no score" : `the run is ${run.status}`;
}

function resultRows(run: RunView): string[][] {
  const { report, counts } = run;
  const { reward, metrics, pass_at_k, pass_k } = report;
  const scores = Object.entries(metrics).map(([name, metric]) => [inlineCode(name), estimateText(metric)]);
  const interval = reward.ci95 === null ? "" : `, 95 %: ${meanIntervalText(reward.ci95, reward.range)}`;
  const causes = namedCounts({ ...counts.unscored, ...counts.failed, ...counts.cancelled });
  const rows = [
    ["reward", `**${estimateText(reward)}**${interval}`],
    ["pass@k", sharesText("pass@", pass_at_k, pass_k)],
    ["tasks", `${countText(run.num_examples)}, ${countText(run.rollouts_per_example)} per task`],
    ["rollouts", namedCounts(endedCounts(counts))],
    ["not scored", causes === "–" ? "" : inlineCode(causes)],
    ["error", run.error === null ? "" : inlineCode(run.error.message, ERROR)],
    ["tokens", countText(report.usage.total_tokens)],
    ["cost", [costText(run), capText(run)].filter((part) => part !== "").join("; ")],
    ["run", run.id],
  ].filter(([, value]) => value !== "");
  const more = scores.length > METRICS ? [["more scores", countText(scores.length - METRICS)]] : [];
  return [...rows, ...scores.slice(0, METRICS), ...more];
}

function comparisonPart(comparison: RunComparison): string {
  const { run, baseline, difference, wins, losses, ties, tasks, n_flipped } = comparison;
  const interval = difference.ci95 === null ? "" : ` (95 %: ${intervalText(difference.ci95)})`;
  const row = [
    baseline.id,
    baseline.mean?.toFixed(3) ?? "–",
    run.mean?.toFixed(3) ?? "–",
    `${signedText(difference.mean)}${interval}`,
    `${countText(wins)} better, ${countText(losses)} worse, ${countText(ties)} the same`,
  ];
  // What got worse comes first, as on a terminal.
  const flipped = tasks.toSorted((a, b) => a.run - a.baseline - (b.run - b.baseline)).slice(0, TASKS);
  const rows = flipped.map((task) => [
    inlineCode(`${task.example_id} ${task.task_text ?? ""}`),
    task.baseline.toFixed(3),
    task.run.toFixed(3),
    task.rollout_id,
  ]);
  const table = markdownTable(["task", "baseline", "run", "rollout"], rows);
  return [
    markdownTable(["baseline", "its mean", "mean of the run", "paired difference", "tasks"], [row]),
    foldedPart(`Tasks that passed in one run only: ${shown(rows.length, n_flipped)}`, table),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function casesPart(cases: readonly TaskCase[]): string {
  const bad = cases.filter(({ kind }) => kind !== "passed");
  const rows = bad
    .slice(0, TASKS)
    .map(({ name, message, rollout, reply }) => [name, inlineCode(message), inlineCode(reply), rollout ?? "–"]);
  const table = markdownTable(["task", "why", "last reply", "rollout"], rows);
  return foldedPart(`Tasks that did not pass: ${shown(rows.length, bad.length)}`, table);
}

function shown(rows: number, all: number): string {
  return rows === all ? countText(all) : `the first ${rows} of ${countText(all)}`;
}
