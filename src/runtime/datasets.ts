/** A run's rows, wherever they come from: stored as JSON lines in R2, or made by the environment. */
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import type { JsonObject } from "../core/json.ts";
import { exampleAt, parseRow, rowAt } from "../core/task.ts";
import { readRowTexts } from "./dataset-rows.ts";
import type { Subrequests } from "./subrequests.ts";
import type { RunSpec } from "./wire.ts";

/** What decides which rows a run plays, and in which order. */
export type RowsOf = Pick<RunSpec, "dataset" | "shuffle" | "seed" | "training">;

export interface Example {
  readonly example_id: number;
  readonly row: JsonObject;
}

/** Stored rows by their number. */
export type RowTexts = ReadonlyMap<number, string>;

/** Where a run's rows come from: a training run never takes those that are kept for evals. */
export function sourceOf(
  { dataset, evalDataset }: AnyEnvironment,
  training: boolean,
): AnyEnvironment["dataset"] {
  return training ? dataset : (evalDataset ?? dataset);
}

/** What is stored of the rows of these groups; nothing for a dataset that is not. Throws `RowsMissing`. */
export async function storedRows(
  env: Env,
  spec: RowsOf,
  groups: readonly number[],
  subrequests: Subrequests,
): Promise<RowTexts> {
  const { key, index_key } = spec.dataset;
  if (key === null) return new Map();
  const rows = groups.map((group) => exampleAt(group, orderOf(spec)));
  return await readRowTexts(env, { key, index_key }, rows, subrequests);
}

/** The example of group `group`, with its row from `stored` if it is there. Throws `RowError` for one its schema refuses. */
export function exampleOfGroup(
  spec: RowsOf,
  environment: AnyEnvironment,
  group: number,
  stored: RowTexts,
): Example {
  const example_id = exampleAt(group, orderOf(spec));
  const source = sourceOf(environment, spec.training !== undefined);
  const text = stored.get(example_id);
  if (text === undefined) return { example_id, row: rowAt(source, example_id, spec.seed) };
  return { example_id, row: parseRow(source, JSON.parse(text), example_id) };
}

export function rowsText(rows: readonly unknown[]): string {
  return rows.map((row) => JSON.stringify(row)).join("\n");
}

function orderOf({ dataset: { length }, shuffle, seed }: RowsOf) {
  return { length, shuffle, seed };
}
