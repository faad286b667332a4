/** Prints the results of runs: a row for each, then the metrics, then the distribution of the rewards. */

import type { RunView } from "../../contract/run.ts";
import { stopText } from "../../contract/stop-text.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { Reason } from "../eval/reasons.ts";
import {
  bestText,
  countText,
  dollarsText,
  endedCounts,
  estimateText,
  meanIntervalText,
  namedCounts,
  rangeText,
  sharesText,
  sum,
} from "./format.ts";
import { columns } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { padTo, safeLine } from "./text.ts";

interface Bin {
  readonly label: string;
  readonly count: number;
}

const BINS = 10;

const WIDEST_BAR = 40;

/** A run that was followed to its end. */
export interface EndedRun {
  readonly run: RunView;
  readonly tally: RewardTally;
  readonly reasons: readonly Reason[];
}

const HEADER = ["environment", "reward", "tasks", "rollouts", "turns", "tokens", "stop conditions", "outcomes"];

/** The table of results, and the distribution of the rewards of each run. */
export function resultsText(ended: readonly EndedRun[], { width, room }: Pick<Terminal, "width" | "room">): string {
  const histograms = ended.map(({ run, tally }) => {
    const of = ended.length > 1 ? ` of ${run.environment.id}` : "";
    return histogram(tally, { scored: run.counts.scored, of, width });
  });
  const table = resultsTable(ended, room);
  return [table, ...histograms].filter((part) => part !== "").join("\n\n");
}

export function resultsTable(runs: readonly Pick<EndedRun, "run" | "reasons">[], room: number): string {
  const rows = runs.flatMap(({ run }) => [rowOf(run), ...memberRows(run)]);
  return [columns(HEADER, rows, room), ...runs.flatMap(notesOf)].join("\n");
}

function inWords(stops: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(stops).map(([name, n]) => [stopText(name), n]));
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
    safeLine(namedCounts(inWords(report.stop_conditions))),
    namedCounts(endedCounts(counts)),
  ];
}

/** The rows of a group's environments, from its report. */
function memberRows({ report }: RunView): string[][] {
  return Object.entries(report.members ?? {}).map(([name, { reward }]) => {
    const { n_tasks, n_rollouts: scored, n_unscored: unscored, n_error: failed } = reward;
    const rollouts = scored + unscored + failed;
    const outcomes = namedCounts({ scored, unscored, failed });
    const [tasks, all] = [countText(n_tasks), countText(rollouts)];
    return [safeLine(`- ${name}`), estimateText(reward), tasks, all, "", "", "", outcomes];
  });
}

function whereTheReasonIs({ id, counts }: RunView): string {
  const bad = (["failed", "unscored"] as const).find((outcome) => sum(counts[outcome]) > 0);
  return bad === undefined ? "" : `; why: ${COMMAND} run results ${id} --outcome ${bad}`;
}

/** The details of the mean: its intervals, pass@k, and how many rollouts were truncated. */
function reportText(run: RunView): string {
  const { reward, pass_at_k, pass_hat_k, pass_k } = run.report;
  const { ci95, wilson95 = null, range, n_truncated } = reward;
  const parts = [
    bestText(run),
    ci95 === null ? "" : `reward 95 % ${meanIntervalText(ci95, range)}`,
    wilson95 === null ? "" : `Wilson ${rangeText(wilson95)}`,
    sharesText("pass@", pass_at_k, pass_k),
    sharesText("pass^", pass_hat_k, pass_k),
    n_truncated === 0 ? "" : `cut off ${countText(n_truncated)}`,
  ];
  return parts.filter((part) => part !== "").join("; ");
}

/** The amount that counts against the run's own cap; empty for a run without one. */
export function capText({ max_cost_micros, report: { counted_micros, lost_reservations } }: RunView): string {
  if (max_cost_micros === null) return "";
  const { calls = 0, micros = 0 } = lost_reservations ?? {};
  const held = calls === 0 ? "" : `, ${dollarsText(micros)} of it reserved for ${callsText(calls)} that were lost`;
  const { released } = lost_reservations ?? {};
  const freed = released === undefined ? "" : `, ${dollarsText(released.micros)} for such calls released`;
  return `cost: ${dollarsText(counted_micros ?? 0)} of ${dollarsText(max_cost_micros)}${held}${freed}`;
}

function callsText(calls: number): string {
  return `${countText(calls)} ${calls === 1 ? "call" : "calls"}`;
}

/** The judges' cost is separate from the policy's. */
function judgesText({ report: { usage } }: RunView): string {
  if (usage.judge === undefined) return "";
  const { calls, total_tokens } = usage.judge;
  return `judges: ${countText(calls)} calls, ${countText(total_tokens)} tokens`;
}

/** How much was answered from the project's cache; empty if nothing was. */
function reusedText({ report: { turns, usage } }: RunView): string {
  if (usage.reused === undefined) return "";
  const { turns: reused, tokens } = usage.reused;
  return `cache: ${countText(reused)} of ${countText(turns)} turns, ${countText(tokens)} tokens that are in no other figure`;
}

/** The costs that are known and not zero; $0.00 if all are known and zero. */
export function costText({ cost: { policy_micros, judge_micros, charged_micros } }: RunView): string {
  const parts = [
    [policy_micros, "the model"],
    [judge_micros, "judges"],
    [charged_micros, "charged by the platform"],
  ] as const;
  const known = parts.flatMap(([micros, what]) =>
    micros === null || micros === 0 ? [] : [`${dollarsText(micros)} ${what}`],
  );
  if (known.length > 0) return `cost: ${known.join(", ")}`;
  return parts.every(([micros]) => micros === 0) ? `cost: ${dollarsText(0)}` : "";
}

/** For a group, the metrics of each member: metrics with the same name in two members may differ in meaning. */
function metricsTexts({ report: { metrics, members } }: RunView): string[] {
  if (members === undefined) return [metricsText(metrics)];
  return Object.entries(members).map(([name, { metrics }]) => `${name}: ${metricsText(metrics)}`);
}

function metricsText(metrics: RunView["report"]["metrics"]): string {
  return Object.entries(metrics)
    .map(([name, metric]) => `${name} ${estimateText(metric)}`)
    .join(", ");
}

function notesOf({ run, reasons }: Pick<EndedRun, "run" | "reasons">): string[] {
  const notes = [reportText(run), ...metricsTexts(run), judgesText(run), reusedText(run), costText(run), capText(run)]
    .filter((note) => note !== "")
    .map((note) => `  ${run.environment.id}: ${note}`);
  const causes = { ...run.counts.unscored, ...run.counts.failed, ...run.counts.cancelled };
  if (sum(causes) > 0) {
    notes.push(`  ${run.environment.id}: not scored: ${namedCounts(causes)}${whereTheReasonIs(run)}`);
  }
  for (const { cause, message, others } of reasons) {
    if (message === null) continue;
    notes.push(`    ${cause}: ${message}${others === 0 ? "" : ` (and ${countText(others)} with other messages)`}`);
  }
  if (run.error !== null) notes.push(`  ${run.environment.id}: ${run.status}: ${run.error.message}`);
  // They may contain text from an endpoint.
  return notes.map(safeLine);
}

/** Counts how often each reward was seen. Rewards usually have few different values. */
export class RewardTally {
  readonly counts = new Map<number, number>();
  /** Bounds memory if every reward is different. */
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  add(reward: number | null): void {
    if (reward === null) return;
    const seen = this.counts.get(reward);
    if (seen === undefined && this.counts.size >= this.#most) return;
    this.counts.set(reward, (seen ?? 0) + 1);
  }

  get total(): number {
    return [...this.counts.values()].reduce((total, count) => total + count, 0);
  }
}

/**
 * The distribution of rewards: a mean of 0.5 may be all halves, or half zeros and half ones. One line for each value if
 * there are few, else for each tenth of their range; "" if there is no reward. `scored` is the number of all rewards;
 * `of` ends the title.
 */
export function histogram(
  tally: RewardTally,
  { scored, of, width }: { scored: number; of: string; width: number },
): string {
  if (tally.total === 0) return "";
  const values = [...tally.counts].sort(([a], [b]) => a - b);
  const bins = values.length <= BINS ? eachValue(values) : tenths(values);
  const labelWidth = Math.max(...bins.map(({ label }) => label.length));
  const countWidth = Math.max(...bins.map(({ count }) => countText(count).length));
  const most = Math.max(...bins.map(({ count }) => count));
  const room = Math.max(1, Math.min(WIDEST_BAR, width - labelWidth - countWidth - 5));
  const lines = bins.map(({ label, count }) => {
    const cells = count === 0 ? 0 : Math.max(1, Math.round((count / most) * room));
    const bar = padTo("█".repeat(cells), room);
    return `  ${label.padStart(labelWidth)} ${bar} ${countText(count).padStart(countWidth)}`;
  });
  const seen = tally.total < scored ? `${countText(tally.total)} of ` : "";
  return [`Rewards of ${seen}${countText(scored)} scored ${scored === 1 ? "rollout" : "rollouts"}${of}`, ...lines].join(
    "\n",
  );
}

function eachValue(values: readonly (readonly [number, number])[]): Bin[] {
  return values.map(([value, count]) => ({ label: value.toFixed(3), count }));
}

function tenths(values: readonly (readonly [number, number])[]): Bin[] {
  const low = values[0]?.[0] ?? 0;
  const high = values.at(-1)?.[0] ?? 1;
  const step = (high - low) / BINS;
  return Array.from({ length: BINS }, (_, at) => {
    const [from, to] = [low + at * step, at === BINS - 1 ? high : low + (at + 1) * step];
    const inside = values.filter(([value]) => {
      return value >= from && (value < to || (at === BINS - 1 && value <= high));
    });
    return {
      label: `${from.toFixed(3)} to ${to.toFixed(3)}`,
      count: inside.reduce((total, [, count]) => total + count, 0),
    };
  });
}
