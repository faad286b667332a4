/** A run as it stands: counts and statistics, made from its rows. */
import type { RunCounts, RunReport, RunView } from "../core/run.ts";
import { RunningSummary } from "../core/statistics.ts";
import { pendingOf, plannedOf } from "./run-ledger.ts";
import type { RolloutEntry, RunHead } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";
import type { RunSpec } from "./wire.ts";

/** What a run's object knows better than its row in D1. */
export type LiveView = Pick<RunView, "status" | "error" | "flow" | "counts" | "report"> & {
  readonly settled_at: number | null;
};

export function countsOf(spec: RunSpec, head: RunHead): RunCounts {
  return {
    planned: plannedOf(spec),
    pending: pendingOf(spec, head),
    dispatched: head.dispatched,
    in_flight: head.in_flight,
    scored: head.scored,
    unscored: { ...head.unscored },
    failed: { ...head.failed },
    cancelled: { ...head.cancelled },
  };
}

export function flowOf(head: RunHead): RunView["flow"] {
  if (head.settled_at !== null) return null;
  if (head.stop === null) return { state: "active", reason: null };
  const reason = head.stop.kind === "cancel" ? "cancelled by the user" : head.stop.message;
  return { state: "draining", reason };
}

/** A report walks every row: while a run goes on it is made anew at most so often. */
const REPORT_EVERY_MS = 500;

/** Views of one run, its report made anew only when rollouts have ended since. */
export class LiveViews {
  readonly #store: RunStore;
  readonly #now: () => number;
  #made: { readonly finished: number; readonly at: number; readonly report: RunReport } | null =
    null;

  constructor(store: RunStore, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  of(spec: RunSpec): LiveView {
    const head = this.#store.head();
    return {
      status: head.status,
      error: head.error,
      settled_at: head.settled_at,
      flow: flowOf(head),
      counts: countsOf(spec, head),
      report: this.#report(head),
    };
  }

  #report({ finished, settled_at }: RunHead): RunReport {
    const at = this.#now();
    const made = this.#made;
    const recent = settled_at === null && made !== null && at - made.at < REPORT_EVERY_MS;
    if (made !== null && (made.finished === finished || recent)) return made.report;
    const report = reportOfRows(this.#store.reportRows());
    this.#made = { finished, at, report };
    return report;
  }
}

/** Walks the rows once, in order of groups; memory does not grow with their number. */
export function reportOfRows(rows: Iterable<RolloutEntry>): RunReport {
  const totals = new Totals();
  const summary = new RunningSummary();
  for (const row of rows) {
    if (row.status !== "done") continue;
    totals.add(row);
    summary.add({ group: row.group_index, reward: row.reward, metrics: metricsOf(row) });
  }
  const { reward, metrics, pass_at_k, pass_hat_k } = summary.result();
  const { mean, se, ci95, n_tasks } = reward;
  const { prompt_tokens, completion_tokens } = totals;
  const { n_rollouts, n_unscored, n_error, n_truncated } = totals;
  return {
    reward: { mean, se, ci95, n_tasks, n_rollouts, n_unscored, n_error, n_truncated },
    metrics,
    pass_at_k,
    pass_hat_k,
    stop_conditions: totals.stop_conditions,
    turns: totals.turns,
    calls: totals.calls,
    usage: {
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
    },
  };
}

class Totals {
  n_rollouts = 0;
  n_unscored = 0;
  n_error = 0;
  n_truncated = 0;
  turns = 0;
  calls = 0;
  prompt_tokens = 0;
  completion_tokens = 0;
  readonly stop_conditions: Record<string, number> = {};

  add(row: RolloutEntry): void {
    if (row.outcome === "scored") this.n_rollouts += 1;
    if (row.outcome === "unscored") this.n_unscored += 1;
    if (row.outcome === "failed") this.n_error += 1;
    this.n_truncated += row.is_truncated;
    this.turns += row.turns;
    this.calls += row.calls;
    this.prompt_tokens += row.prompt_tokens;
    this.completion_tokens += row.completion_tokens;
    const stop = row.stop_condition;
    if (stop !== null) this.stop_conditions[stop] = (this.stop_conditions[stop] ?? 0) + 1;
  }
}

/** Scores by name, rewards and metrics alike; the field calls all of them metrics. */
export function metricsOf(row: RolloutEntry): Record<string, number | null> {
  const scores = JSON.parse(row.scores ?? "[]") as { name: string; score: number | null }[];
  return Object.fromEntries(scores.map(({ name, score }) => [name, score]));
}
