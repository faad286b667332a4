/**
 * The numbers of a run's report, from its rows.
 *
 * A slot counts by its latest attempt: one that was superseded adds nothing but what it cost, which was spent.
 */
import type { RunReport } from "../core/run.ts";
import { RunningSummary } from "../core/statistics.ts";
import type { RolloutEntry } from "./run-schema.ts";
import type { RunSpec } from "./wire.ts";

/** What a report is made of, of a rollout that is done. */
export type ReportRow = Pick<
  RolloutEntry,
  | "group_index"
  | "superseded_by"
  | "outcome"
  | "reward"
  | "scores"
  | "is_truncated"
  | "stop_condition"
  | "turns"
  | "calls"
  | "prompt_tokens"
  | "completion_tokens"
  | "finish_seq"
>;

/** In order of groups: the same rows give the same numbers to the last digit. */
export function reportOfRows(spec: RunSpec, rows: Iterable<ReportRow>): RunReport {
  const sums = new ReportSums(spec.rollouts_per_example);
  for (const row of rows) sums.add(row);
  return sums.report();
}

/** Sums of rows that come in any order, each once. */
export class ReportSums {
  readonly #summary: RunningSummary;
  readonly #stops: Record<string, number> = {};
  #scored = 0;
  #unscored = 0;
  #failed = 0;
  #truncated = 0;
  #turns = 0;
  #calls = 0;
  #promptTokens = 0;
  #completionTokens = 0;

  constructor(rolloutsPerExample: number) {
    this.#summary = new RunningSummary(rolloutsPerExample);
  }

  add(row: ReportRow): void {
    this.#turns += row.turns;
    this.#calls += row.calls;
    this.#promptTokens += row.prompt_tokens;
    this.#completionTokens += row.completion_tokens;
    if (row.superseded_by === null) this.#count(row);
  }

  report(): RunReport {
    const { reward, metrics, pass_at_k, pass_hat_k } = this.#summary.result();
    const { mean, se, ci95, n_tasks } = reward;
    return {
      reward: {
        ...{ mean, se, ci95, n_tasks },
        n_rollouts: this.#scored,
        n_unscored: this.#unscored,
        n_error: this.#failed,
        n_truncated: this.#truncated,
      },
      metrics,
      pass_at_k,
      pass_hat_k,
      stop_conditions: { ...this.#stops },
      turns: this.#turns,
      calls: this.#calls,
      usage: {
        prompt_tokens: this.#promptTokens,
        completion_tokens: this.#completionTokens,
        total_tokens: this.#promptTokens + this.#completionTokens,
      },
    };
  }

  #count(row: ReportRow): void {
    if (row.outcome === "scored") this.#scored += 1;
    if (row.outcome === "unscored") this.#unscored += 1;
    if (row.outcome === "failed") this.#failed += 1;
    this.#truncated += row.is_truncated;
    const stop = row.stop_condition;
    if (stop !== null) this.#stops[stop] = (this.#stops[stop] ?? 0) + 1;
    this.#summary.add({ group: row.group_index, reward: row.reward, metrics: metricsOf(row) });
  }
}

/** Scores by name, rewards and metrics alike; the field calls all of them metrics. */
export function metricsOf({ scores }: Pick<RolloutEntry, "scores">): Record<string, number | null> {
  const all = JSON.parse(scores ?? "[]") as { name: string; score: number | null }[];
  return Object.fromEntries(all.map(({ name, score }) => [name, score]));
}
