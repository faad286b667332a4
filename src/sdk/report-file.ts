/** Reads the contents of a run's report file. */
import { printFilter, printName } from "../contract/filter.ts";
import type { ReportFile } from "../contract/report-file.ts";
import { HISTOGRAM_FIELDS, type Histogram, type RolloutSummary } from "../contract/rollout-list.ts";
import type { RunView } from "../contract/run.ts";
import type { RollcallClient } from "./client.ts";
import type { CallOptions } from "./options.ts";

/** Maximal number of rollouts in a file. */
const ROLLOUTS = 2000;
const A_PAGE = 500;
/** Maximal number of metrics with a histogram. */
const METRICS = 50;

/** `now`: epoch seconds. Calls are sequential, so that a run with many metrics does not flood the platform. */
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
  const agreement = await client.runs.agreement(runId, options);
  const rollouts: RolloutSummary[] = [];
  for await (const rollout of client.rollouts.list(runId, { limit: A_PAGE }, options)) {
    rollouts.push(withoutPrompt(rollout));
    if (rollouts.length === ROLLOUTS) break;
  }
  const left_out = Math.max(0, run.counts.dispatched - rollouts.length);
  return { format: "rollcall.report/1", exported_at: now, run, histograms, firsts, agreement, rollouts, left_out };
}

/** The file may be passed to anybody, so it has no text of the prompt. */
function withoutPrompt(rollout: RolloutSummary): RolloutSummary {
  return { ...rollout, task_text: null };
}

/** The measures of its histograms, in the spelling of filters. */
export function measuresOf({ report }: Pick<RunView, "report">): readonly string[] {
  return [...HISTOGRAM_FIELDS, ...Object.keys(report.metrics).slice(0, METRICS).map(printName)];
}

const BADLY = ["failed", "unscored", "cancelled"] as const;

export interface BadEnd {
  readonly outcome: (typeof BADLY)[number];
  readonly reason: string;
  readonly n: number;
  /** Matches them, among the attempts that count. */
  readonly filter: string;
}

/** Each class of rollouts that ended without a score, with their number. */
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
