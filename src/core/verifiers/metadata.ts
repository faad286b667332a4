/**
 * `metadata.json` beside a `results.jsonl`: verifiers' keys in its order, its numbers by its rules, then ours.
 *
 * Rows are taken in one at a time and of each only what the numbers need is kept. `avg_reward` and the rest weigh every row
 * alike, as verifiers does; the run's own report weighs every task alike.
 */

import type { ResultRow, RunView } from "../../contract/run.ts";
import { PASS_THRESHOLD } from "../statistics/pass-at-k.ts";
import { averageMetrics, averageReward, type OutputRow, passTables } from "./numbers.ts";

type Tools = NonNullable<ResultRow["tool_defs"]>;
type TokenUsage = ResultRow["token_usage"];

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

  /** `release`: what wrote the file. */
  of(run: RunView, stateColumns: readonly string[], release: string): Record<string, unknown> {
    const rows = this.#rows;
    const attempts = run.rollouts_per_example;
    return {
      env_id: run.environment.id,
      env_args: run.environment_args,
      model: run.model,
      base_url: run.endpoint.base_url,
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

  /** Means over the rows that have usage; null when none has. */
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

  /** Of rows that were all offered tools of the same names; else null. */
  #tools(): Tools | null {
    const [only, ...others] = this.#toolSets.values();
    return only === undefined || only.length === 0 || others.length > 0 ? null : only;
  }
}
