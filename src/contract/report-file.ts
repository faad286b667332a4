/**
 * A run's report as one HTML file that works offline: its data, and how the data is put into the template that the
 * build of the page makes (src/web/report-file.tsx).
 */
import type { RunAgreement } from "./agreement.ts";
import type { Histogram, RolloutSummary } from "./rollout-list.ts";
import type { RunView } from "./run.ts";

export interface ReportFile {
  readonly format: "rollcall.report/1";
  /** Epoch seconds. */
  readonly exported_at: number;
  readonly run: RunView;
  /** By measure: `reward`, `turns`, …, and each metric by its name in a filter. */
  readonly histograms: Readonly<Record<string, Histogram>>;
  /** The first rollout of each class that ended badly, by the filter of the class; null if it was deleted. */
  readonly firsts: Readonly<Record<string, RolloutSummary | null>>;
  /** With the people who reviewed the run. */
  readonly agreement: RunAgreement;
  /** The first rollouts, in the order of dispatch. */
  readonly rollouts: readonly RolloutSummary[];
  /** How many more rollouts the run has. */
  readonly left_out: number;
}

/** The placeholder for the report's data in the template. */
export const DATA_PLACE = "{{rollcall-report}}";

/** Fills the template. No text of the report can close the HTML element around it. */
export function fillReportFile(template: string, report: ReportFile): string {
  const [before, after, ...more] = template.split(DATA_PLACE);
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error("the report template must have exactly one place for the data");
  }
  return before + JSON.stringify(report).replaceAll("<", "\\u003c") + after;
}
