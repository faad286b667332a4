/** Uploads of datasets in parts. */
import { and, count, eq, exists, gt, isNull, sql } from "drizzle-orm";
import type { DatasetUploadView } from "../../contract/dataset-upload.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import type { NewDataset } from "./datasets.ts";
import { insertOnce, isThere, type Kept, type Remembered } from "./idempotency-keys.ts";
import { type Page, pageOf, seconds } from "./page.ts";
import { type DatasetUploadRow, datasets, datasetUploads } from "./schema.ts";
import { inOrganization, inProject } from "./scoped.ts";

export type NewUpload = Omit<DatasetUploadRow, "org_id" | "project_id">;

export function uploadViewOf(row: NewUpload): DatasetUploadView {
  const { id, name, environment, environment_args, bytes, sha256, dataset_id, created_at } = row;
  return {
    object: "dataset_upload",
    ...{ id, name, environment, environment_args, bytes, sha256 },
    part_bytes: LIMITS.datasetPartBytes,
    dataset_id,
    created_at: seconds(created_at),
    expires_at: seconds(created_at + LIMITS.uploadMs),
  };
}

export async function findUpload(database: Database, scope: Scope, id: string): Promise<DatasetUploadRow | null> {
  const rows = await inProject(database, scope).select(datasetUploads, eq(datasetUploads.id, id));
  return rows[0] ?? null;
}

/** Uploads that have not expired, by time of creation, then id; at most `page.limit`. `sha256`: only those of this file. */
export async function listUploads(
  database: Database,
  scope: Scope,
  page: Page,
  { now, sha256 }: { readonly now: number; readonly sha256?: string | undefined },
): Promise<DatasetUploadRow[]> {
  const ofFile = sha256 === undefined ? undefined : eq(datasetUploads.sha256, sha256);
  return await pageOf(datasetUploads, page, (beyond) =>
    inProject(database, scope).select(datasetUploads, liveAt(now), ofFile, beyond),
  );
}

function liveAt(now: number) {
  return gt(datasetUploads.created_at, now - LIMITS.uploadMs);
}

/** `full`: the organisation has as many unfinished uploads as it may have. */
export async function insertUpload(
  database: Database,
  scope: Scope,
  upload: NewUpload,
  made: Remembered | null,
): Promise<Kept | "full"> {
  const open = and(isNull(datasetUploads.dataset_id), liveAt(upload.created_at));
  const others = inOrganization(database, scope.orgId).columns({ n: count() }, datasetUploads, open);
  const also = sql`(${others}) < ${LIMITS.openUploads}`;
  const kept = await insertOnce(database, scope, datasetUploads, upload, made, { also });
  if (kept !== "gone") return kept;
  const [{ n } = { n: 0 }] = await others;
  return n >= LIMITS.openUploads ? "full" : "gone";
}

/** Writes the dataset and notes it at its upload, both or neither. `gone`: the upload ended before, or the project. */
export function insertUploaded(database: Database, scope: Scope, uploadId: string, dataset: NewDataset): Promise<Kept> {
  const project = inProject(database, scope);
  const open = [eq(datasetUploads.id, uploadId), isNull(datasetUploads.dataset_id)];
  return insertOnce(database, scope, datasets, dataset, null, {
    also: exists(project.columns({ id: datasetUploads.id }, datasetUploads, ...open)),
    beside: [
      project.update(datasetUploads, { dataset_id: dataset.id }, ...open, isThere(project, datasets, dataset.id)),
    ],
  });
}

export async function deleteUpload(database: Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(datasetUploads, eq(datasetUploads.id, id));
}
