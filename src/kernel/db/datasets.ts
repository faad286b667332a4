/** Uploaded datasets. A row is written here only after the file and its index are complete in the object store. */
import { eq, notExists } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { Database } from "./database.ts";
import { insertOnce, type Kept, type Remembered } from "./idempotency-keys.ts";
import { type Page, pageOf, seconds } from "./page.ts";
import { type Deleted, RUNS_LISTED, unfinishedRuns } from "./runs.ts";
import { type DatasetTableRow, datasets, datasetUploads, runs } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type NewDataset = Omit<DatasetTableRow, "org_id" | "project_id">;

export function datasetViewOf(row: NewDataset): DatasetView {
  const { id, name, rows, bytes, sha256, environment } = row;
  return {
    object: "dataset",
    id,
    name,
    rows,
    bytes,
    sha256,
    environment: environment && { id: environment.id, version: environment.version, digest: environment.digest },
    created_at: seconds(row.created_at),
  };
}

/** Finds a dataset by its id or by its name. */
export async function findDataset(
  database: Database,
  scope: Scope,
  named: { readonly id: string } | { readonly name: string },
): Promise<DatasetTableRow | null> {
  const called = "id" in named ? eq(datasets.id, named.id) : eq(datasets.name, named.name);
  const rows = await inProject(database, scope).select(datasets, called);
  return rows[0] ?? null;
}

/** Lists datasets by time of creation, then id; at most `page.limit` of them. */
export async function listDatasets(database: Database, scope: Scope, page: Page): Promise<DatasetTableRow[]> {
  return await pageOf(datasets, page, (beyond) => inProject(database, scope).select(datasets, beyond));
}

export function insertDataset(
  database: Database,
  scope: Scope,
  dataset: NewDataset,
  made: Remembered | null,
): Promise<Kept> {
  return insertOnce(database, scope, datasets, dataset, made);
}

/**
 * Deletes a dataset that no unfinished run names; otherwise returns the runs that do, as far as the list of runs knows.
 */
export async function deleteUnusedDataset(database: Database, scope: Scope, id: string): Promise<Deleted> {
  const project = inProject(database, scope);
  const used = () => unfinishedRuns(database, scope, eq(runs.dataset_id, id));
  const still = project.columns({ id: datasets.id }, datasets, eq(datasets.id, id));
  const [deleted, using] = await project.batch([
    project.delete(datasets, eq(datasets.id, id), notExists(used())).returning({ id: datasets.id }),
    used().limit(RUNS_LISTED),
    // The same file can be uploaded again: its upload no longer answers with this dataset.
    project.delete(datasetUploads, eq(datasetUploads.dataset_id, id), notExists(still)),
  ]);
  return { deleted: deleted.length > 0, usedBy: using.map((run) => run.id) };
}
