/** The rows a validation plays: the first ones of the dataset, each parsed once, as a run would. */
import type { AnyEnvironment } from "../environments/any-environment.ts";
import type { RolloutTask } from "../rollout/rollout.ts";
import { buildTask, parseRow, RowError, rowAt } from "../rollout/task.ts";

export const SEED = 0;

export interface Example {
  /** Which row of the dataset it is. */
  readonly index: number;
  readonly task: Omit<RolloutTask, "id" | "task_key">;
}

export interface ReadRows {
  readonly examples: readonly Example[];
  /** Rows that are none, each with the path of what is wrong. */
  readonly faults: readonly string[];
}

/** At most `count` rows; `uploaded` are those of a dataset whose rows come with the run. */
export function readRows(environment: AnyEnvironment, count: number, uploaded: readonly unknown[]): ReadRows {
  const { kind, length } = environment.dataset;
  const available = kind === "uploaded" ? uploaded.length : (length ?? count);
  const examples: Example[] = [];
  const faults: string[] = [];
  for (let index = 0; index < Math.min(count, available); index += 1) {
    try {
      examples.push(readExample(environment, index, uploaded));
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      faults.push(`${thrown.path}: ${thrown.message}`);
    }
  }
  return { examples, faults };
}

/** Throws `RowError`. */
export function readExample(environment: AnyEnvironment, index: number, uploaded: readonly unknown[]): Example {
  const { dataset } = environment;
  const row = dataset.kind === "uploaded" ? parseRow(dataset, uploaded[index], index) : rowAt(dataset, index, SEED);
  return { index, task: buildTask(environment, row, index) };
}
