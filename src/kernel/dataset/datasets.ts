/** Reads a run's rows: stored as JSON lines in R2, or made by the environment. */

import { findLost, within } from "../../contract/lost-json.ts";
import type { DatasetDescription, EnvironmentCode, MadeTask } from "../../core/protocol/environment-code.ts";
import { exampleAt, RowError } from "../../core/rollout/task.ts";
import { sharedMembers, shuffledRow } from "../../core/training/members.ts";
import { makeTask } from "../environment/make-task.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";
import { readRowTexts } from "./rows.ts";

/** The fields that decide which rows a run plays, and in which order. */
export type RowsOf = Pick<RunSpec, "dataset" | "shuffle" | "seed" | "training">;

/** The same for an eval of a training run: its rows, its seed, its order. */
export type EvalRowsOf = Omit<RowsOf, "training">;

/** The texts of stored rows, by row number. */
export type RowTexts = ReadonlyMap<number, string>;

/** Where a run's rows come from: a training run never uses the rows that are kept for evals. */
export function sourceOf({ description }: EnvironmentCode, training: boolean): DatasetDescription {
  const { dataset, evalDataset } = description;
  return training ? dataset : (evalDataset ?? dataset);
}

/**
 * What an eval of a training run's own environment plays: the rows of the run's request, or the environment's rows for
 * evals, or its rows. The evals that a training run starts and the rows that it holds out both use this.
 */
export function evalOf({ dataset, seed, shuffle }: RowsOf, environment: EnvironmentCode): EvalRowsOf {
  if (dataset.kind === "uploaded") return { dataset, seed, shuffle };
  const { kind, length } = sourceOf(environment, false);
  // An environment of uploaded rows has no rows before an eval brings them.
  const known = kind === "uploaded" ? 0 : length;
  return { dataset: { kind, key: null, length: known }, seed, shuffle: shuffle && known !== null };
}

/** The stored texts of the rows of these groups; empty if the dataset is not stored. Throws `RowsMissing`. */
export async function storedRows(
  env: Env,
  spec: RowsOf,
  groups: readonly number[],
  subrequests: Subrequests,
): Promise<RowTexts> {
  const { key, index_key } = spec.dataset;
  if (key === null) return new Map();
  const rows = groups.map((group) => rowOf(spec, group));
  return await readRowTexts(env, { key, index_key }, rows, subrequests);
}

/**
 * The task of group `group`, with its row from `stored` if it is there. Throws `RowError` if the schema refuses the
 * row, or if the row has numbers that lose digits. (Such rows are refused on upload, but older ones may be stored.)
 */
export async function taskOfGroup(
  spec: RowsOf,
  environment: EnvironmentCode,
  group: number,
  stored: RowTexts,
): Promise<MadeTask> {
  const index = rowOf(spec, group);
  const from = { index, training: spec.training !== undefined };
  const text = stored.get(index);
  if (text === undefined) return await makeTask(environment, { kind: "own", ...from, seed: spec.seed });
  const row: unknown = JSON.parse(text);
  const lost = findLost(text, row);
  if (lost !== null) throw new RowError(index, within(lost), lost.message);
  return await makeTask(environment, { kind: "brought", ...from, row });
}

export function rowsText(rows: readonly unknown[]): string {
  return rows.map((row) => JSON.stringify(row)).join("\n");
}

/** The first places of a run's order, with the row at each, sorted by row so that neighbours are read together. */
export function firstPlaces(spec: RowsOf, count: number): { readonly place: number; readonly row: number }[] {
  const length = Math.min(count, spec.dataset.length ?? count);
  return Array.from({ length }, (_, place) => ({
    place,
    row: rowOf(spec, place),
  })).sort((a, b) => a.row - b.row);
}

/** The row at this place of the run's order. */
function rowOf(spec: RowsOf, place: number): number {
  const members = sharedMembers(spec.training);
  if (members === null) return exampleAt(place, orderOf(spec));
  return spec.shuffle ? shuffledRow(members, place, spec.seed) : place;
}

function orderOf({ dataset: { length }, shuffle, seed }: RowsOf) {
  return { length, shuffle, seed };
}
