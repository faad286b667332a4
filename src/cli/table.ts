/** The results table: a row per run, then the metrics of each. */
import type { RunView } from "../core/run.ts";
import { countText, estimateText, namedCounts, sum } from "./format.ts";

const HEADER = [
  "environment",
  "reward",
  "tasks",
  "rollouts",
  "turns",
  "tokens",
  "stop conditions",
  "outcomes",
];

export function resultsTable(runs: readonly RunView[]): string {
  const rows = runs.map(rowOf);
  const widths = HEADER.map((title, column) => {
    return Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0));
  });
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width));
  return [line(HEADER), line(rule), ...rows.map(line), ...runs.flatMap(notesOf)].join("\n");
}

function rowOf(run: RunView): string[] {
  const { counts, report } = run;
  return [
    run.environment.id,
    estimateText(report.reward),
    countText(report.reward.n_tasks),
    countText(counts.planned),
    countText(report.turns),
    countText(report.usage.total_tokens),
    namedCounts(report.stop_conditions),
    namedCounts({
      scored: counts.scored,
      unscored: sum(counts.unscored),
      failed: sum(counts.failed),
      cancelled: sum(counts.cancelled),
    }),
  ];
}

function notesOf(run: RunView): string[] {
  const metrics = Object.entries(run.report.metrics).map(([name, metric]) => {
    return `${name} ${estimateText(metric)}`;
  });
  const notes = metrics.length > 0 ? [`  ${run.environment.id}: ${metrics.join(", ")}`] : [];
  const causes = { ...run.counts.unscored, ...run.counts.failed, ...run.counts.cancelled };
  if (sum(causes) > 0) notes.push(`  ${run.environment.id}: not scored: ${namedCounts(causes)}`);
  if (run.error !== null)
    notes.push(`  ${run.environment.id}: ${run.status}: ${run.error.message}`);
  return notes;
}
