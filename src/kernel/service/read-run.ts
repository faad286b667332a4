/**
 * Reads a run and its rollouts. D1 has the request; the run's object has the current state. The MAC of an id is checked
 * first, then the id is looked up in D1 in the caller's scope. So neither a guessed id nor another owner's reaches an
 * object.
 */

import { costOfUsage } from "../../contract/judgement.ts";
import type { RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import type { StepMetrics } from "../../contract/training-view.ts";
import type { RolloutPlace } from "../../core/ids.ts";
import { databaseOf } from "../db/database.ts";
import { currentView } from "../db/old-names.ts";
import { getRun, type RunRecord, runViewOf, updateRun } from "../db/runs.ts";
import { LruCache } from "../kit/caches.ts";
import { runObject } from "../kit/names.ts";
import { readId } from "../kit/secrets.ts";
import { failedForStorage, goneMessage, isLocal, isUnreadable, STORAGE_FULL } from "../kit/storage-faults.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { LiveView, StoredEvent } from "../messages/run-records.ts";

export async function readRun(env: Env, scope: Scope, id: string): Promise<Result<RunView>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const live = await readableView(env, found.value.object);
  const stored = runViewOf(found.value.record);
  if (live === "storage_full") return { ok: true, value: waitingForRoom(stored) };
  if (live === "unreadable") return { ok: true, value: withoutObject(stored) };
  if (live === null) return { ok: true, value: await endLost(env, scope, stored) };
  const { settled_at, ...standing } = currentView(live);
  const finished_at = settled_at === null ? null : Math.floor(settled_at / 1000);
  const cost = costOfUsage(standing.report.usage);
  return { ok: true, value: { ...stored, ...standing, cost, finished_at } };
}

/** The metrics of a training run, by step; an eval has none. */
export async function readMetrics(
  env: Env,
  scope: Scope,
  id: string,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<Result<StepMetrics[]>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const steps = await found.value.object.stepMetrics(after, limit);
  return steps === null ? lostRun(id) : { ok: true, value: steps };
}

export async function readEvents(
  env: Env,
  scope: Scope,
  id: string,
  after: number,
  waitMs: number,
): Promise<Result<{ events: StoredEvent[]; ended: boolean }>> {
  const owned = ownedName(scope, id);
  if (!followed.has(owned)) {
    const found = await openRun(env, scope, id);
    if (!found.ok) return found;
    if (followed.size >= FOLLOWED_KEPT) followed.clear();
    followed.add(owned);
  }
  const events = await runObject(env, scope, id).events(after, waitMs);
  if (events !== null) return { ok: true, value: events };
  // The run existed when it was found first, so it was lost or deleted since.
  followed.delete(owned);
  const found = await openRun(env, scope, id);
  return found.ok ? lostRun(id) : found;
}

/**
 * Runs whose events are being read, each found once in its scope: a stream reads often, and must not query D1 each
 * time.
 */
const followed = new Set<string>();
const FOLLOWED_KEPT = 1000;

/** The run's object existed before, because the run has started, but now it answers that the run does not exist. */
export function lostRun(id: string): Result<never> {
  return refuse("run_unreadable", goneMessage(id), "id");
}

/** Null if the object is empty. */
async function readableView(env: Env, object: RunRpc): Promise<LiveView | "storage_full" | "unreadable" | null> {
  try {
    return await object.view();
  } catch (thrown) {
    if (await failedForStorage(env, thrown)) return "storage_full";
    if (!isUnreadable(env, thrown)) throw thrown;
    return "unreadable";
  }
}

/** The state that D1 has: the run's object does not open until the disk has free space. */
function waitingForRoom(stored: RunView): RunView {
  if (isEnded(stored)) return stored;
  return { ...stored, status_reason: { state: "storage_full", reason: STORAGE_FULL } };
}

function isEnded({ status }: RunView): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The row of an ended run is complete. A run that had not ended will never end. */
function withoutObject(stored: RunView): RunView {
  const { id } = stored;
  if (isEnded(stored)) return stored;
  const error = {
    code: "run_unreadable",
    message: `${id} cannot continue: its object is not readable`,
  };
  return { ...stored, status: "failed", status_reason: null, error };
}

/** The object cannot update D1 any more, which lists read. The reader that finds it lost updates the row. */
async function endLost(env: Env, scope: Scope, stored: RunView): Promise<RunView> {
  if (isEnded(stored)) return stored;
  const lost = withoutObject(stored);
  const { status, error } = lost;
  const finished_at = Date.now();
  await updateRun(databaseOf(env), scope, lost.id, { status, error, finished_at });
  return { ...lost, finished_at: Math.floor(finished_at / 1000) };
}

/** The run and its object. If accepting the run was interrupted, the object is created here. */
export async function openRun(
  env: Env,
  scope: Scope,
  id: string,
): Promise<Result<{ record: RunRecord; object: RunRpc }>> {
  if (readId(env, id)?.kind !== "run") return notFound("run", id);
  const { record, current } = await recordOf(env, scope, id);
  if (record === null) return notFound("run", id);
  const object = runObject(env, scope, id, record.run.spec.fleet);
  if (current && record.run.status === "queued") await object.create(record.run.spec);
  return { ok: true, value: { record, object } };
}

/**
 * For a full disk: then the database of a local platform does not answer, because each of its reads writes. The fields
 * of a run that are read from D1 hardly change; its state comes from its object.
 */
const lastRead = new LruCache<RunRecord>(100);

async function recordOf(env: Env, scope: Scope, id: string): Promise<{ record: RunRecord | null; current: boolean }> {
  const owned = ownedName(scope, id);
  try {
    const record = await getRun(databaseOf(env), scope, id);
    if (record !== null && isLocal(env)) lastRead.set(owned, record);
    return { record, current: true };
  } catch (thrown) {
    const record = lastRead.get(owned);
    // The object of a queued run may not exist yet, and it is created from the row in D1.
    const known = record !== undefined && record.run.status !== "queued";
    if (!known || !(await failedForStorage(env, thrown))) throw thrown;
    return { record, current: false };
  }
}

function ownedName({ orgId, projectId }: Scope, id: string): string {
  return `${orgId}/${projectId}/${id}`;
}

/** The run in a rollout's id, and the rollout's place in it; null for an id that we did not mint. */
export function placeOfId(env: Env, id: string): (RolloutPlace & { runId: string }) | null {
  const parsed = readId(env, id);
  return parsed?.kind === "rollout" ? parsed : null;
}

export function notFound(what: string, id: string): Result<never> {
  return refuse("not_found", `no ${what} ${id}`, "id");
}
