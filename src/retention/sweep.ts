/**
 * The daily sweep of a project: what is older than the project keeps it goes, a slice at a time. Runs get deletions as if
 * somebody had asked for them; datasets that an unfinished run names wait for the next sweep.
 */
import { DEFAULT_RETENTION, type Retention } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization, type Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { deleteUnusedDataset } from "../kernel/db/datasets.ts";
import { uploadKeys } from "../kernel/kit/names.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { sweepProject } from "../kernel/kit/slice-hooks.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { beginRunDeletion, unfinishedDeletions } from "./deletion-queries.ts";
import type { Jobs } from "./jobs.ts";
import {
  datasetsBefore,
  dropIdempotencyKeys,
  dropReceipts,
  dropVerdicts,
  endedRunsBefore,
  hasToSweep,
  retentionOf,
} from "./sweep-queries.ts";

const DAY_MS = 24 * 3600_000;
/** Receipts of deletions are kept as long. */
const RECEIPT_DAYS = 90;
/** Who asked for what the sweep deletes. */
const RETENTION = "retention";
/** Runs and datasets a slice looks at. Jobs of so many runs take their turns. */
const AT_ONCE = 50;

/** `more`: the next slice follows at once. `idle`: there is nothing here to sweep, today or later. */
export type Swept = "more" | "done" | "idle" | "gone";

export async function sweepSlice(
  env: Env,
  scope: Scope,
  jobs: Pick<Jobs, "add">,
  now: number,
  subrequests: Subrequests,
): Promise<Swept> {
  const kept = await subrequests.fetch(() => retentionOf(env.DB, scope));
  if (kept === null) return "gone";
  // Of which nobody here ever heard: the process ended right after they were written.
  for (const { id, kind, target_id } of await subrequests.fetch(() => unfinishedDeletions(env.DB, scope, AT_ONCE))) {
    if (kind === "run") jobs.add({ id, kind, target_id }, null, now);
  }
  const rows = await dropRows(env, scope, kept, now, subrequests);
  const runs = await deleteRuns(env, scope, kept.runs_days, jobs, now, subrequests);
  const files = await deleteDatasets(env, scope, kept.datasets_days, now, subrequests);
  if (rows || runs || files) return "more";
  return (await subrequests.fetch(() => hasToSweep(env.DB, scope, kept))) ? "done" : "idle";
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
  const { DB } = env;
  const limit = LIMITS.sliceRows;
  const keys = () => dropIdempotencyKeys(DB, scope, before(now, idempotency_keys_days), limit);
  // What was made in the organisation and in no project is swept by any project of it.
  const shared = ofOrganization(scope.orgId);
  const sharedDays = DEFAULT_RETENTION.idempotency_keys_days;
  const sharedKeys = () => dropIdempotencyKeys(DB, shared, before(now, sharedDays), limit);
  const receipts = () => dropReceipts(DB, scope.orgId, before(now, RECEIPT_DAYS), limit);
  const verdicts = () => (verdicts_days === null ? false : dropVerdicts(DB, scope, before(now, verdicts_days), limit));
  let more = await sweepProject(env, scope, { now, limit }, subrequests);
  for (const drop of [keys, sharedKeys, receipts, verdicts])
    more = (await subrequests.fetch(async () => await drop())) || more;
  return more;
}

/** True: there are more. One that a run still scores is left for the next sweep. */
async function deleteRuns(
  env: Env,
  scope: Scope,
  days: number | null,
  jobs: Pick<Jobs, "add">,
  now: number,
  subrequests: Subrequests,
): Promise<boolean> {
  if (days === null) return false;
  const old = await subrequests.fetch(() => endedRunsBefore(env.DB, scope, before(now, days), AT_ONCE));
  let begun = 0;
  for (const runId of old) {
    const made = { id: mintId("del", minting(env, now)), requested_by: RETENTION, created_at: now };
    const { deletion } = await subrequests.fetch(() => beginRunDeletion(env.DB, scope, runId, made));
    if (deletion === null) continue;
    begun += 1;
    jobs.add({ id: deletion.id, kind: "run", target_id: runId }, null, now);
  }
  return begun > 0 && old.length === AT_ONCE;
}

/** True: there may be more. A kill between the row and its files leaves files that nothing names. */
async function deleteDatasets(
  env: Env,
  scope: Scope,
  days: number | null,
  now: number,
  subrequests: Subrequests,
): Promise<boolean> {
  if (days === null) return false;
  const old = await subrequests.fetch(() => datasetsBefore(env.DB, scope, before(now, days), AT_ONCE));
  for (const id of old) {
    const { deleted } = await subrequests.fetch(() => deleteUnusedDataset(env.DB, scope, id));
    if (deleted) await subrequests.fetch(() => env.STORE.delete(Object.values(uploadKeys(scope, id))));
  }
  return old.length === AT_ONCE;
}
