/**
 * The numbers of verifiers' result files, by its own rules, over rows as those files hold them.
 * Source: verifiers' metric and usage functions, less what we do otherwise: a reward of null was not scored, is left out of
 * a mean and makes its example incomplete. Our own report (statistics.ts) takes the task as its unit; these do not.
 */
import type { Usage } from "../../contract/messages.ts";
import { passAtK, passHatK } from "../statistics/pass-at-k.ts";

export interface OutputRow {
  readonly example_id: number;
  /** Null: not scored. A row of an older file may lack it, which reads as 0. */
  readonly reward?: number | null;
  readonly metrics?: Readonly<Record<string, unknown>> | null;
}

/** By k = 1, 2, 4, … up to the attempts at an example. */
export interface PassFields {
  readonly pass_at_k: Record<string, number>;
  readonly pass_all_k: Record<string, number>;
}

/** Null when no row counts. */
export function averageReward(rows: readonly Pick<OutputRow, "reward">[]): number | null {
  return meanOf(rows.map(rewardOf).filter((reward) => reward !== null));
}

/** For each name the mean over the rows that have it as a number; booleans are 1 and 0. */
export function averageMetrics(rows: readonly Pick<OutputRow, "metrics">[]): Record<string, number> {
  const sums = new Map<string, { sum: number; rows: number }>();
  for (const [name, value] of rows.flatMap(({ metrics }) => Object.entries(metrics ?? {}))) {
    if (typeof value !== "number" && typeof value !== "boolean") continue;
    const before = sums.get(name) ?? { sum: 0, rows: 0 };
    sums.set(name, { sum: before.sum + Number(value), rows: before.rows + 1 });
  }
  return Object.fromEntries([...sums].map(([name, { sum, rows: n }]) => [name, sum / n]));
}

/**
 * pass@k and pass^k, a mean over the examples whose first `attempts` rows are all there and scored. An attempt passes from
 * the reward `threshold` on. Empty for one attempt, and when no example is complete.
 */
export function passTables(
  rows: readonly Pick<OutputRow, "example_id" | "reward">[],
  { attempts, threshold }: { readonly attempts: number; readonly threshold: number },
): PassFields {
  const passes = passesOfComplete(rows, attempts, threshold);
  const tables: PassFields = { pass_at_k: {}, pass_all_k: {} };
  if (attempts <= 1 || passes.length === 0) return tables;
  for (let k = 1; k <= attempts; k *= 2) {
    tables.pass_at_k[k] = meanOf(passes.map((passed) => passAtK(attempts, passed, k))) ?? 0;
    tables.pass_all_k[k] = meanOf(passes.map((passed) => passHatK(attempts, passed, k))) ?? 0;
  }
  return tables;
}

/**
 * Tokens in the context at the end of a rollout whose history only grew: those the model sampled in all its calls, and
 * the rest of the last call's. A call without usage (null) is passed over; without any, both are 0.
 */
export function contextTokens(calls: readonly (Pick<Usage, "prompt_tokens" | "completion_tokens"> | null)[]): {
  final_output_tokens: number;
  final_input_tokens: number;
} {
  const counted = calls.filter((usage) => usage !== null);
  const sampled = counted.reduce((sum, usage) => sum + usage.completion_tokens, 0);
  const last = counted.at(-1);
  const context = last === undefined ? 0 : last.prompt_tokens + last.completion_tokens;
  return { final_output_tokens: sampled, final_input_tokens: Math.max(0, context - sampled) };
}

function passesOfComplete(rows: Parameters<typeof passTables>[0], attempts: number, threshold: number): number[] {
  const examples = new Map<number, (number | null)[]>();
  for (const row of rows) {
    const rewards = examples.get(row.example_id) ?? [];
    examples.set(row.example_id, [...rewards, rewardOf(row)]);
  }
  return [...examples.values()]
    .map((rewards) => rewards.slice(0, attempts))
    .filter((rewards) => rewards.length === attempts && !rewards.includes(null))
    .map((rewards) => rewards.filter((reward) => reward !== null && reward >= threshold).length);
}

function rewardOf({ reward }: Pick<OutputRow, "reward">): number | null {
  return reward === undefined ? 0 : reward;
}

function meanOf(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
