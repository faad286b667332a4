/**
 * A run's report as one HTML file, which opens from disk with the network off: what is in it, and how it is put into the
 * template that the build of the page makes (src/web/report-file.tsx).
 */
import type { Histogram, RolloutSummary } from "./rollout-list.ts";
import type { RunView } from "./run.ts";

export interface ReportFile {
  readonly format: "rollcall.report/1";
  /** Epoch seconds. */
  readonly exported_at: number;
  readonly run: RunView;
  /** By what they are of: `reward`, `turns`, …, and each metric by its name in a filter. */
  readonly histograms: Readonly<Record<string, Histogram>>;
  /** The first rollout of each class that did not end well, by the filter that finds them; null where none is left. */
  readonly firsts: Readonly<Record<string, RolloutSummary | null>>;
  /** The first of them, in the order they were dispatched. */
  readonly rollouts: readonly RolloutSummary[];
  /** How many more the run has. */
  readonly left_out: number;
}

/** Where the report's data stands in the template. */
export const DATA_PLACE = "{{rollcall-report}}";

/** The file. No text of the report can end the element it stands in. */
export function fillReportFile(template: string, report: ReportFile): string {
  const [before, after, ...more] = template.split(DATA_PLACE);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error("the report template must have exactly one place for the data");
  }
  return before + JSON.stringify(report).replaceAll("<", "\\u003c") + after;
}
