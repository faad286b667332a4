/** A run's rows, wherever they come from: uploaded ones as JSONL in R2, the others made by the environment. */
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import type { JsonObject } from "../core/json.ts";
import { exampleAt, parseRow, rowAt } from "../core/task.ts";
import type { Subrequests } from "./subrequests.ts";
import type { RunSpec } from "./wire.ts";

/** Uploaded datasets kept parsed per isolate; one is at most a request body. */
const DATASETS_KEPT = 8;
const kept = new Map<string, Promise<readonly unknown[]>>();

export interface Example {
  readonly example_id: number;
  readonly row: JsonObject;
}

/** The example of group `group`. Throws `RowError` for a row its schema refuses. */
export async function exampleOfGroup(
  env: Env,
  spec: RunSpec,
  environment: AnyEnvironment,
  group: number,
  subrequests: Subrequests,
): Promise<Example> {
  const { dataset, shuffle, seed } = spec;
  const example_id = exampleAt(group, { length: dataset.length, shuffle, seed });
  const source = environment.evalDataset ?? environment.dataset;
  if (dataset.key === null) return { example_id, row: rowAt(source, example_id, seed) };
  const rows = await uploadedRows(env, dataset.key, subrequests);
  return { example_id, row: parseRow(source, rows[example_id], example_id) };
}

export function rowsText(rows: readonly unknown[]): string {
  return rows.map((row) => JSON.stringify(row)).join("\n");
}

function uploadedRows(
  env: Env,
  key: string,
  subrequests: Subrequests,
): Promise<readonly unknown[]> {
  const known = kept.get(key);
  if (known !== undefined) return known;
  const oldest = kept.keys().next();
  if (kept.size >= DATASETS_KEPT && !oldest.done) kept.delete(oldest.value);
  const rows = subrequests.fetch(async () => {
    const object = await env.STORE.get(key);
    if (object === null) throw new Error(`the rows of the run are missing: ${key}`);
    return (await object.text()).split("\n").map((line): unknown => JSON.parse(line));
  });
  kept.set(key, rows);
  // A failed read must not be remembered: the next message tries again.
  rows.catch(() => kept.delete(key));
  return rows;
}
