/**
 * Computes the numbers of a run's report from its rows.
 *
 * A slot counts by its latest attempt. A superseded attempt adds only its cost, since that money was spent.
 */

import {
  type Cost,
  costOfUsage,
  type JudgeUsage,
  sumOfCosts,
  type TokenPrices,
  tokenCost,
} from "../../contract/judgement.ts";
import type { LostUsage, ReusedUsage, RunReport } from "../../contract/report.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import { RunningSummary } from "../../core/statistics/statistics.ts";
import { groupSizeOf, largestGroup } from "../../core/training/members.ts";
import type { KeyRange, RolloutEntry, TaskMean } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import { chargedBy } from "./charged.ts";

/** Keys begin with at least four hex digits. */
const PREFIXES = 0x1_0000;

/** The columns of a finished rollout that a report is computed from. */
export type ReportRow = Pick<
  RolloutEntry,
  | "group_index"
  | "slot"
  | "attempt"
  | "member"
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
  | "cached_tokens"
  | "judge_calls"
  | "judge_prompt_tokens"
  | "judge_completion_tokens"
  | "judge_micros"
  | "lost_calls"
  | "lost_micros"
  | "unmetered"
  | "reused_turns"
  | "reused_tokens"
  | "charge"
  | "finish_seq"
>;

export const REPORT_COLUMNS = `group_index, slot, attempt, member, superseded_by, outcome, reward, scores, is_truncated, stop_condition, turns, calls,
  prompt_tokens, completion_tokens, cached_tokens, judge_calls, judge_prompt_tokens, judge_completion_tokens,
  judge_micros, charge, lost_calls, lost_micros, unmetered, reused_turns, reused_tokens, finish_seq`;

/** Finished rollouts after a place (group, slot, attempt), by group, at most as many as the last parameter. */
export const REPORT_QUERY = `select ${REPORT_COLUMNS} from rollouts
  where status = 'done' and (group_index, slot, attempt) > (?, ?, ?) order by group_index, slot, attempt limit ?`;

/** What a report needs to know of its run. */
type Reported = Pick<RunSpec, "rollouts_per_example" | "money" | "training">;

/** Sums of rows, each added once. In order of groups the same rows give the same numbers to the last digit. */
export class ReportSums {
  readonly #spec: Reported;
  readonly #capped: boolean;
  readonly #lost = { lost_calls: 0, lost_micros: 0 };
  readonly #prices: TokenPrices | undefined;
  readonly #all: RewardSums;
  /** By member of a group of environments. The number of members is bounded. */
  readonly #members = new Map<string, RewardSums>();
  readonly #stops: Record<string, number> = {};
  #turns = 0;
  #calls = 0;
  #promptTokens = 0;
  #completionTokens = 0;
  #cachedTokens = 0;
  #policyMicros: number | null = 0;
  #chargedMicros = 0;
  readonly #reused = { reused_turns: 0, reused_tokens: 0 };
  readonly #judges: JudgeColumns = {
    judge_calls: 0,
    judge_prompt_tokens: 0,
    judge_completion_tokens: 0,
    judge_micros: 0,
  };

  constructor(spec: Reported) {
    const { money } = spec;
    this.#spec = spec;
    this.#capped = capOf(spec) !== null;
    this.#prices = money?.policy ?? undefined;
    // The groups of members differ in size: smaller ones stay open, and count with the rollouts they have.
    this.#all = new RewardSums(largestGroup(spec));
  }

  add(row: ReportRow): void {
    this.#turns += row.turns;
    this.#calls += row.calls;
    this.#promptTokens += row.prompt_tokens;
    this.#completionTokens += row.completion_tokens;
    this.#lost.lost_calls += row.lost_calls;
    this.#lost.lost_micros += row.lost_micros;
    this.#cachedTokens += row.cached_tokens;
    this.#reused.reused_turns += row.reused_turns;
    this.#reused.reused_tokens += row.reused_tokens;
    this.#policyMicros = sumOfCosts([this.#policyMicros, policyMicros(this.#prices, row)]);
    this.#chargedMicros += chargedBy(row);
    this.#judges.judge_calls += row.judge_calls;
    this.#judges.judge_prompt_tokens += row.judge_prompt_tokens;
    this.#judges.judge_completion_tokens += row.judge_completion_tokens;
    const spent = row.judge_calls === 0 ? 0 : row.judge_micros;
    this.#judges.judge_micros = sumOfCosts([this.#judges.judge_micros, spent]);
    if (row.superseded_by === null) this.#count(row);
  }

  report(): RunReport {
    return {
      ...this.#all.result(),
      ...this.#byMember(),
      stop_conditions: { ...this.#stops },
      turns: this.#turns,
      calls: this.#calls,
      usage: {
        prompt_tokens: this.#promptTokens,
        completion_tokens: this.#completionTokens,
        total_tokens: this.#promptTokens + this.#completionTokens,
        ...(this.#cachedTokens > 0 && { cached_tokens: this.#cachedTokens }),
        cost_micros: this.#policyMicros,
        charged_micros: this.#chargedMicros,
        ...judgeUsage(this.#judges),
        ...reusedUsage(this.#reused),
        ...lostUsage(this.#lost, this.#capped),
      },
    };
  }

  #count(row: ReportRow): void {
    const stop = row.stop_condition;
    if (stop !== null) this.#stops[stop] = (this.#stops[stop] ?? 0) + 1;
    this.#all.add(row);
    if (row.member !== null) this.#sumsOf(row.member).add(row);
  }

  #sumsOf(member: string): RewardSums {
    const known = this.#members.get(member);
    if (known !== undefined) return known;
    const made = new RewardSums(groupSizeOf(this.#spec, member));
    this.#members.set(member, made);
    return made;
  }

  #byMember(): Pick<RunReport, "members"> {
    if (this.#members.size === 0) return {};
    const byName = [...this.#members].sort(([a], [b]) => (a < b ? -1 : 1));
    const members = byName.map(([name, sums]) => {
      const { reward, metrics } = sums.result();
      return [name, { reward, metrics }] as const;
    });
    return { members: Object.fromEntries(members) };
  }
}

/** Statistics of rewards and metrics. */
class RewardSums {
  readonly #summary: RunningSummary;
  #scored = 0;
  #unscored = 0;
  #failed = 0;
  #truncated = 0;

  constructor(rolloutsPerExample: number) {
    this.#summary = new RunningSummary(rolloutsPerExample);
  }

  add(row: ReportRow): void {
    if (row.outcome === "scored") this.#scored += 1;
    if (row.outcome === "unscored") this.#unscored += 1;
    if (row.outcome === "failed") this.#failed += 1;
    this.#truncated += row.is_truncated;
    this.#summary.add({ group: row.group_index, reward: row.reward, metrics: metricsOf(row) });
  }

  result(): Pick<RunReport, "reward" | "metrics" | "pass_at_k" | "pass_hat_k" | "pass_k"> {
    const { reward, ...byName } = this.#summary.result();
    const { mean, se, ci95, wilson95, range, n_tasks } = reward;
    return {
      reward: {
        ...{ mean, se, ci95, wilson95, range, n_tasks },
        n_rollouts: this.#scored,
        n_unscored: this.#unscored,
        n_error: this.#failed,
        n_truncated: this.#truncated,
      },
      ...byName,
    };
  }
}

type JudgeColumns = Pick<
  RolloutEntry,
  "judge_calls" | "judge_prompt_tokens" | "judge_completion_tokens" | "judge_micros"
>;

/** The price of a rollout's tokens at the policy's endpoint; null if unknown, 0 if no tokens were used. */
export function policyMicros(
  prices: TokenPrices | undefined,
  used: Pick<RolloutEntry, "prompt_tokens" | "completion_tokens" | "unmetered">,
): number | null {
  if (used.unmetered > 0) return null;
  return used.prompt_tokens + used.completion_tokens === 0 ? 0 : tokenCost(prices, used);
}

/** What one rollout cost. `prices`: those of the policy's endpoint; null if its owner stated none. */
export function costOf(
  row: JudgeColumns & Pick<RolloutEntry, "prompt_tokens" | "completion_tokens" | "unmetered" | "charge">,
  prices: TokenPrices | null,
): Cost {
  const cost_micros = policyMicros(prices ?? undefined, row);
  return costOfUsage({ ...judgeUsage(row), cost_micros, charged_micros: chargedBy(row) });
}

/** Empty if no judge was called. */
export function judgeUsage({
  judge_calls: calls,
  judge_prompt_tokens: prompt_tokens,
  judge_completion_tokens: completion_tokens,
  judge_micros: cost_micros,
}: JudgeColumns): { readonly judge?: JudgeUsage } {
  const total_tokens = prompt_tokens + completion_tokens;
  const judge = { prompt_tokens, completion_tokens, total_tokens, calls, cost_micros };
  return calls === 0 ? {} : { judge };
}

/** Empty if no answer came from the cache. */
export function reusedUsage({
  reused_turns: turns,
  reused_tokens: tokens,
}: Pick<RolloutEntry, "reused_turns" | "reused_tokens">): { readonly reused?: ReusedUsage } {
  return turns === 0 ? {} : { reused: { turns, tokens } };
}

/** Empty if no call was lost. */
export function lostUsage(
  { lost_calls: calls, lost_micros: micros }: Pick<RolloutEntry, "lost_calls" | "lost_micros">,
  capped: boolean,
): { readonly lost?: LostUsage } {
  return calls === 0 ? {} : { lost: { calls, micros: capped ? micros : null } };
}

/** Scores by name: rewards and metrics. The report's field calls all of them metrics. */
export function metricsOf({ scores }: Pick<RolloutEntry, "scores">): Record<string, number | null> {
  const all = JSON.parse(scores ?? "[]") as { name: string; score: number | null }[];
  return Object.fromEntries(all.map(({ name, score }) => [name, score]));
}

/** Splits all keys into this many consecutive ranges that hold about the same number of keys. */
export function keyRanges(count: number): KeyRange[] {
  const ranges = Math.min(PREFIXES, Math.max(1, count));
  const bound = (at: number) =>
    Math.ceil((at * PREFIXES) / ranges)
      .toString(16)
      .padStart(4, "0");
  return Array.from({ length: ranges }, (_, at) => ({
    from: at === 0 ? "" : bound(at),
    to: at === ranges - 1 ? null : bound(at + 1),
  }));
}

/** Mean score per task, for a range of task keys, in their order. Only reads. `metric`: a score; null: the reward. */
export function taskMeans(sql: SqlStorage, metric: string | null, { from, to }: KeyRange): TaskMean[] {
  const score = `(select value ->> 'score' from json_each(scores) where value ->> 'name' = ?)`;
  const value = metric === null ? "reward" : score;
  // min(seq) decides which row the other plain columns are taken from.
  const cursor = sql.exec<TaskMean>(
    `select task_key, avg(value) as mean, min(seq) as seq, id as rollout_id,
       ifnull(example_id, group_index) as example_id
     from (select seq, id, task_key, example_id, group_index, ${value} as value from rollouts
       where status = 'done' and superseded_by is null and task_key >= ? and (? is null or task_key < ?))
     where value is not null group by task_key order by task_key`,
    ...(metric === null ? [] : [metric]),
    ...[from, to, to],
  );
  return cursor.toArray();
}
