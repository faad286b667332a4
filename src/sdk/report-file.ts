/** Reads what a run's report as one file holds. */
import { printFilter, printName } from "../contract/filter.ts";
import type { ReportFile } from "../contract/report-file.ts";
import { HISTOGRAM_FIELDS, type Histogram, type RolloutSummary } from "../contract/rollout-list.ts";
import type { RunView } from "../contract/run.ts";
import type { RollcallClient } from "./client.ts";
import type { CallOptions } from "./options.ts";

/** Rollouts that a file holds. */
const ROLLOUTS = 2000;
const A_PAGE = 500;
/** Metrics whose histograms it holds. */
const METRICS = 50;

/** `now`: epoch seconds. Calls are made one after the other: a run with many metrics floods nobody. */
export async function readReportFile(
  client: RollcallClient,
  runId: string,
  now: number,
  options: CallOptions = {},
): Promise<ReportFile> {
  const run = await client.runs.get(runId, options);
  const histograms: Record<string, Histogram> = {};
  for (const of of measuresOf(run)) histograms[of] = await client.runs.histogram(runId, { of }, options);
  const firsts: Record<string, RolloutSummary | null> = {};
  for (const filter of badEnds(run)) {
    const page = await client.rollouts.list(runId, { filter, sort: "ended", limit: 1 }, options);
    firsts[filter] = page.data[0] === undefined ? null : withoutPrompt(page.data[0]);
  }
  const rollouts: RolloutSummary[] = [];
  for await (const rollout of client.rollouts.list(runId, { limit: A_PAGE }, options)) {
    rollouts.push(withoutPrompt(rollout));
    if (rollouts.length === ROLLOUTS) break;
  }
  const left_out = Math.max(0, run.counts.dispatched - rollouts.length);
  return { format: "rollcall.report/1", exported_at: now, run, histograms, firsts, rollouts, left_out };
}

/** The file is for anybody, and says nothing about what was asked. */
function withoutPrompt(rollout: RolloutSummary): RolloutSummary {
  return { ...rollout, task_text: null };
}

/** What its histograms may be of, as a filter writes it. */
export function measuresOf({ report }: Pick<RunView, "report">): readonly string[] {
  return [...HISTOGRAM_FIELDS, ...Object.keys(report.metrics).slice(0, METRICS).map(printName)];
}

const BADLY = ["failed", "unscored", "cancelled"] as const;

export interface BadEnd {
  readonly outcome: (typeof BADLY)[number];
  readonly reason: string;
  readonly n: number;
  /** Finds them, by the attempts that count. */
  readonly filter: string;
}

/** Each class of ends that are no score, with how many there are. */
export function badEndsOf({ counts }: Pick<RunView, "counts">): readonly BadEnd[] {
  return BADLY.flatMap((outcome) =>
    Object.entries(counts[outcome]).flatMap(([reason, n]) => {
      if (n === 0) return [];
      const why = printFilter([{ kind: "word", field: "error", values: [reason], negated: false }]);
      return [{ outcome, reason, n, filter: `outcome:${outcome} ${why} superseded:false` }];
    }),
  );
}

function badEnds(run: RunView): readonly string[] {
  return badEndsOf(run).map(({ filter }) => filter);
}
