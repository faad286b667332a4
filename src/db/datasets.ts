/** Uploaded datasets: their file and its index are whole in the object store before a row stands here. */
import { and, eq, inArray, notExists } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { RunStatus } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import type { DatasetView } from "../contract/uploaded-dataset.ts";
import { insertOnce, type Remembered } from "./idempotency-keys.ts";
import { beyond, byTime, ownedBy, type Page, within } from "./page.ts";
import { type DatasetTableRow, datasets, runs } from "./schema.ts";

export type NewDataset = Omit<DatasetTableRow, "org_id" | "project_id">;

const UNFINISHED: RunStatus[] = ["queued", "running", "paused"];
const RUNS_TOLD = 32;

export function datasetViewOf(row: NewDataset): DatasetView {
  const { id, name, rows, bytes, sha256, environment } = row;
  return {
    object: "dataset",
    id,
    name,
    rows,
    bytes,
    sha256,
    environment: environment && {
      id: environment.id,
      version: environment.version,
      digest: environment.digest,
    },
    created_at: Math.floor(row.created_at / 1000),
  };
}

/** By id (`{ id }`) or by name. */
export async function findDataset(
  database: D1Database,
  scope: Scope,
  named: { readonly id: string } | { readonly name: string },
): Promise<DatasetTableRow | null> {
  const called = "id" in named ? eq(datasets.id, named.id) : eq(datasets.name, named.name);
  const rows = await drizzle(database)
    .select()
    .from(datasets)
    .where(and(...within(datasets, scope), called));
  return rows[0] ?? null;
}

/** By time of creation, then id; at most `page.limit` of them. */
export function listDatasets(database: D1Database, scope: Scope, page: Page): Promise<DatasetTableRow[]> {
  return drizzle(database)
    .select()
    .from(datasets)
    .where(and(...within(datasets, scope), ...beyond(datasets, page)))
    .orderBy(...byTime(datasets, page.order))
    .limit(page.limit);
}

export function insertDataset(
  database: D1Database,
  scope: Scope,
  dataset: NewDataset,
  made: Remembered | null,
): Promise<"inserted" | "taken"> {
  const row = { ...dataset, ...ownedBy(scope) };
  return insertOnce(database, scope, drizzle(database).insert(datasets).values(row), made);
}

/** Deletes a dataset that no unfinished run names; otherwise says which do, as far as the list of runs knows. */
export async function deleteUnusedDataset(
  database: D1Database,
  scope: Scope,
  id: string,
): Promise<{ deleted: boolean; usedBy: string[] }> {
  const d1 = drizzle(database);
  const used = () => d1.select({ id: runs.id }).from(runs).where(unfinishedRunsOf(scope, id));
  const [deleted, using] = await d1.batch([
    d1
      .delete(datasets)
      .where(and(...within(datasets, scope), eq(datasets.id, id), notExists(used())))
      .returning({ id: datasets.id }),
    used().limit(RUNS_TOLD),
  ]);
  return { deleted: deleted.length > 0, usedBy: using.map((run) => run.id) };
}

function unfinishedRunsOf(scope: Scope, datasetId: string) {
  return and(...within(runs, scope), eq(runs.dataset_id, datasetId), inArray(runs.status, UNFINISHED));
}
