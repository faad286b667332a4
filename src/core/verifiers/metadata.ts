/**
 * Writes the `metadata.json` of a `results.jsonl`: verifiers' keys in its order, its numbers by its rules, then ours.
 *
 * Rows are read one at a time, and only what the numbers need is kept. `avg_reward` and the other means weigh every row
 * equally, as verifiers does; the run's own report weighs every task equally.
 */

import type { Usage } from "../../contract/messages.ts";
import type { ResultRow, RunView } from "../../contract/run.ts";
import { PASS_THRESHOLD, passAtK, passHatK } from "../statistics/pass-at-k.ts";

type Tools = NonNullable<ResultRow["tool_defs"]>;
type TokenUsage = Omit<ResultRow["token_usage"], "cached_input_tokens">;

export class VerifiersMetadata {
  readonly #rows: OutputRow[] = [];
  readonly #usages: TokenUsage[] = [];
  readonly #toolSets = new Map<string, Tools>();
  #errors = 0;

  add({ example_id, reward, metrics, error, token_usage, tool_defs = [] }: ResultRow): void {
    this.#rows.push({ example_id, reward, metrics });
    if (error !== null) this.#errors += 1;
    if (token_usage.final_output_tokens !== undefined) this.#usages.push(token_usage);
    const names = tool_defs.map(({ name }) => name).sort();
    this.#toolSets.set(JSON.stringify(names), tool_defs);
  }

  /** `release`: the release that writes the file. */
  of(run: RunView, stateColumns: readonly string[], release: string): Record<string, unknown> {
    const rows = this.#rows;
    const attempts = run.rollouts_per_example;
    return {
      env_id: run.environment.id,
      env_args: run.environment_args,
      model: run.model,
      // A fleet has no single address.
      base_url: run.endpoint?.base_url ?? null,
      num_examples: run.num_examples,
      rollouts_per_example: attempts,
      shuffle: run.shuffle,
      shuffle_seed: run.seed,
      sampling_args: run.sampling,
      time: (run.finished_at ?? run.created_at) - run.created_at,
      avg_reward: averageReward(rows),
      avg_metrics: averageMetrics(rows),
      avg_error: rows.length === 0 ? 0 : this.#errors / rows.length,
      ...passTables(rows, { attempts, threshold: PASS_THRESHOLD }),
      pass_threshold: PASS_THRESHOLD,
      usage: this.#meanUsage(),
      version_info: {
        vf_version: release,
        vf_commit: null,
        env_version: run.environment.version,
        env_commit: run.environment.digest,
      },
      state_columns: stateColumns,
      tools: this.#tools(),
      ...(run.name !== null && { name: run.name }),
      run_id: run.id,
      status: run.status,
      counts: run.counts,
      report: run.report,
      metadata: run.metadata,
    };
  }

  /** Means over the rows with usage; null if there are none. */
  #meanUsage(): Required<TokenUsage> | null {
    const mean = (name: keyof TokenUsage) =>
      this.#usages.reduce((sum, usage) => sum + (usage[name] ?? 0), 0) / this.#usages.length;
    if (this.#usages.length === 0) return null;
    return {
      input_tokens: mean("input_tokens"),
      output_tokens: mean("output_tokens"),
      final_input_tokens: mean("final_input_tokens"),
      final_output_tokens: mean("final_output_tokens"),
    };
  }

  /** The tools, if all rows were offered tools of the same names; else null. */
  #tools(): Tools | null {
    const [only, ...others] = this.#toolSets.values();
    return only === undefined || only.length === 0 || others.length > 0 ? null : only;
  }
}

/**
 * The numbers of verifiers' result files, by its own rules, from rows as in those files. Source: verifiers' metric and
 * usage functions, with one exception: a reward of null means "not scored", is left out of a mean and makes its example
 * incomplete. Our own report (statistics.ts) uses the task as its unit; these numbers do not.
 */
export interface OutputRow {
  readonly example_id: number;
  /** Null: not scored. It may be missing in an older file, which counts as 0. */
  readonly reward?: number | null;
  readonly metrics?: Readonly<Record<string, unknown>> | null;
}

/** The keys are k = 1, 2, 4, … up to the number of attempts at an example. */
export interface PassFields {
  readonly pass_at_k: Record<string, number>;
  readonly pass_all_k: Record<string, number>;
}

/** Null if no row has a reward. */
export function averageReward(rows: readonly Pick<OutputRow, "reward">[]): number | null {
  return meanOf(rows.map(rewardOf).filter((reward) => reward !== null));
}

/** For each name the mean over the rows that have it as a number; booleans count as 1 and 0. */
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
 * pass@k and pass^k, as means over the examples whose first `attempts` rows are all present and scored. An attempt
 * passes from the reward `threshold` on. Empty for one attempt, and if no example is complete.
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
 * Tokens in the context at the end of a rollout whose history only grew: the tokens sampled in all its calls, and the
 * rest of the last call's. Calls without usage (null) are skipped; if all are, both numbers are 0.
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
