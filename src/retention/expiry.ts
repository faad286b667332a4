/**
 * The daily reconciliation of a project: deletes what is older than the project's retention, slice by slice. Runs get
 * normal deletions. Datasets that an unfinished run uses wait for the next reconciliation.
 */
import { DEFAULT_RETENTION, type Retention } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization, type Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { dropUpload } from "../kernel/dataset/upload-parts.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { deleteUnusedDataset } from "../kernel/db/datasets.ts";
import { uploadKeys } from "../kernel/kit/names.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { expireProject } from "../kernel/kit/slice-hooks.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { dropAnswers, hasAnswers } from "../kernel/rollout/answer-cache.ts";
import { beginRunDeletion, unfinishedDeletions } from "./deletion-queries.ts";
import {
  datasetsBefore,
  dropIdempotencyKeys,
  dropJudgements,
  dropReceipts,
  endedRunsBefore,
  hasToExpire,
  retentionOf,
  uploadsBefore,
} from "./expiry-queries.ts";
import type { Jobs } from "./jobs.ts";

const DAY_MS = 24 * 3600_000;
/** How long receipts of deletions are kept. */
const RECEIPT_DAYS = 90;
/** The `requested_by` of deletions that the reconciliation starts. */
const RETENTION = "retention";
/** The most runs and datasets in one slice. Jobs of this many runs take turns. */
const AT_ONCE = 50;
/** Each takes up to five calls. */
const UPLOADS_AT_ONCE = 20;
/** An expired upload is kept for so long: a part that began to arrive before may still be stored. */
const UPLOADS_KEPT_MS = LIMITS.uploadMs + DAY_MS;

/** `more`: the next slice follows immediately. `idle`: nothing can expire, now or later. `gone`: no project. */
export type Expiry = "more" | "done" | "idle" | "gone";

export async function expireSlice(
  env: Env,
  scope: Scope,
  jobs: Pick<Jobs, "add">,
  now: number,
  subrequests: Subrequests,
): Promise<Expiry> {
  const kept = await subrequests.fetch(() => retentionOf(databaseOf(env), scope));
  if (kept === null) return "gone";
  // Deletions of which this object was not notified, because the process ended right after they were written.
  for (const { id, kind, target_id } of await subrequests.fetch(() =>
    unfinishedDeletions(databaseOf(env), scope, AT_ONCE),
  )) {
    if (kind === "run") jobs.add({ id, kind, target_id }, null, now);
  }
  const answers = await dropAnswers(env, scope, now, LIMITS.sliceRows, subrequests);
  const rows = await dropRows(env, scope, kept, now, subrequests);
  const runs = await deleteRuns(env, scope, kept.runs_days, jobs, now, subrequests);
  const files = await deleteDatasets(env, scope, kept.datasets_days, now, subrequests);
  const uploads = await deleteUploads(env, scope, now, subrequests);
  if (answers || rows || runs || files || uploads) return "more";
  const waits =
    (await subrequests.fetch(() => hasToExpire(databaseOf(env), scope, kept))) ||
    (await hasAnswers(env, scope, subrequests));
  return waits ? "done" : "idle";
}

function before(now: number, days: number): number {
  return now - days * DAY_MS;
}

/** True: there may be more. */
async function dropRows(
  env: Env,
  scope: Scope,
  { verdicts_days, idempotency_keys_days }: Retention,
  now: number,
  subrequests: Subrequests,
): Promise<boolean> {
  const database = databaseOf(env);
  const limit = LIMITS.sliceRows;
  const keys = () => dropIdempotencyKeys(database, scope, before(now, idempotency_keys_days), limit);
  // Keys without a project belong to the organisation; the reconciliation of any of its projects deletes them.
  const shared = ofOrganization(scope.orgId);
  const sharedDays = DEFAULT_RETENTION.idempotency_keys_days;
  const sharedKeys = () => dropIdempotencyKeys(database, shared, before(now, sharedDays), limit);
  const receipts = () => dropReceipts(database, scope.orgId, before(now, RECEIPT_DAYS), limit);
  const verdicts = () =>
    verdicts_days === null ? false : dropJudgements(database, scope, before(now, verdicts_days), limit);
  let more = await expireProject(env, scope, { now, limit }, subrequests);
  for (const drop of [keys, sharedKeys, receipts, verdicts])
    more = (await subrequests.fetch(async () => await drop())) || more;
  return more;
}

/** True: there may be more. A run that an unfinished run rescores waits for the next reconciliation. */
async function deleteRuns(
  env: Env,
  scope: Scope,
  days: number | null,
  jobs: Pick<Jobs, "add">,
  now: number,
  subrequests: Subrequests,
): Promise<boolean> {
  if (days === null) return false;
  const old = await subrequests.fetch(() => endedRunsBefore(databaseOf(env), scope, before(now, days), AT_ONCE));
  let begun = 0;
  for (const runId of old) {
    const made = { id: mintId("del", minting(env, now)), requested_by: RETENTION, created_at: now };
    const { deletion } = await subrequests.fetch(() => beginRunDeletion(databaseOf(env), scope, runId, made));
    if (deletion === null) continue;
    begun += 1;
    jobs.add({ id: deletion.id, kind: "run", target_id: runId }, null, now);
  }
  return begun > 0 && old.length === AT_ONCE;
}

/** True: there may be more. A kill between the row and its files leaves files without a row. */
async function deleteDatasets(
  env: Env,
  scope: Scope,
  days: number | null,
  now: number,
  subrequests: Subrequests,
): Promise<boolean> {
  if (days === null) return false;
  const old = await subrequests.fetch(() => datasetsBefore(databaseOf(env), scope, before(now, days), AT_ONCE));
  for (const id of old) {
    const { deleted } = await subrequests.fetch(() => deleteUnusedDataset(databaseOf(env), scope, id));
    if (deleted) await subrequests.fetch(() => env.STORE.delete(Object.values(uploadKeys(scope, id))));
  }
  return old.length === AT_ONCE;
}

/** True: there may be more. */
async function deleteUploads(env: Env, scope: Scope, now: number, subrequests: Subrequests): Promise<boolean> {
  const old = await subrequests.fetch(() =>
    uploadsBefore(databaseOf(env), scope, now - UPLOADS_KEPT_MS, UPLOADS_AT_ONCE),
  );
  for (const id of old) await dropUpload(env, scope, id, subrequests);
  return old.length === UPLOADS_AT_ONCE;
}
