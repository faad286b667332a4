/** A run's rows, wherever they come from: stored as JSON lines in R2, or made by the environment. */

import type { JsonObject } from "../../contract/json.ts";
import { findLost, within } from "../../contract/lost-json.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { exampleAt, parseRow, RowError, rowAt } from "../../core/rollout/task.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";
import { readRowTexts } from "./rows.ts";

/** What decides which rows a run plays, and in which order. */
export type RowsOf = Pick<RunSpec, "dataset" | "shuffle" | "seed" | "training">;

/** The same of an eval that is asked as a training run was: its rows, its seed, its order. */
export type EvalRowsOf = Omit<RowsOf, "training">;

export interface Example {
  readonly example_id: number;
  readonly row: JsonObject;
}

/** Stored rows by their number. */
export type RowTexts = ReadonlyMap<number, string>;

/** Where a run's rows come from: a training run never takes those that are kept for evals. */
export function sourceOf({ dataset, evalDataset }: AnyEnvironment, training: boolean): AnyEnvironment["dataset"] {
  return training ? dataset : (evalDataset ?? dataset);
}

/**
 * What an eval of a training run's own environment plays: the rows the run brought, else those the environment keeps for
 * evals, else its rows. The evals that a training run begins and what it holds out both follow it.
 */
export function evalOf({ dataset, seed, shuffle }: RowsOf, environment: AnyEnvironment): EvalRowsOf {
  if (dataset.kind === "uploaded") return { dataset, seed, shuffle };
  const { kind, length } = sourceOf(environment, false);
  // Rows that every eval brings are nobody's before.
  const known = kind === "uploaded" ? 0 : length;
  return { dataset: { kind, key: null, length: known }, seed, shuffle: shuffle && known !== null };
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

/**
 * The example of group `group`, with its row from `stored` if it is there. Throws `RowError` for one its schema refuses,
 * and for one that was stored before rows with such numbers were refused, and would be played with other numbers.
 */
export function exampleOfGroup(spec: RowsOf, environment: AnyEnvironment, group: number, stored: RowTexts): Example {
  const example_id = exampleAt(group, orderOf(spec));
  const source = sourceOf(environment, spec.training !== undefined);
  const text = stored.get(example_id);
  if (text === undefined) return { example_id, row: rowAt(source, example_id, spec.seed) };
  const written: unknown = JSON.parse(text);
  const lost = findLost(text, written);
  if (lost !== null) throw new RowError(example_id, within(lost), lost.message);
  return { example_id, row: parseRow(source, written, example_id) };
}

export function rowsText(rows: readonly unknown[]): string {
  return rows.map((row) => JSON.stringify(row)).join("\n");
}

/** The first places of a run's order, with the row at each, by row: rows that lie together are read together. */
export function firstPlaces(spec: RowsOf, count: number): { readonly place: number; readonly row: number }[] {
  const length = Math.min(count, spec.dataset.length ?? count);
  return Array.from({ length }, (_, place) => ({
    place,
    row: exampleAt(place, orderOf(spec)),
  })).sort((a, b) => a.row - b.row);
}

function orderOf({ dataset: { length }, shuffle, seed }: RowsOf) {
  return { length, shuffle, seed };
}
