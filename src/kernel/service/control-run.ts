/** Changes that a client makes to an existing run or rollout. Each returns the new state. */
import type { RolloutView, RunView } from "../../contract/run.ts";
import type { RetryRequest, RunPatch } from "../../contract/run-control.ts";
import type { Scope } from "../../contract/scope.ts";
import { databaseOf } from "../db/database.ts";
import { getEndpoint } from "../db/endpoints.ts";
import { changeRun as changeRow } from "../db/runs.ts";
import type { CreateOptions } from "../kit/idempotency.ts";
import { publishedEnvironments } from "../kit/slice-hooks.ts";
import { keyReused, type Result, refuse } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { RetryRefusal } from "../messages/wire.ts";
import { readRollout } from "./read-rollouts.ts";
import { lostRun, notFound, openRun, placeOfId, readRun } from "./read-run.ts";

export function cancelRun(env: Env, scope: Scope, id: string): Promise<Result<RunView>> {
  return ask(env, scope, id, (run) => run.cancel());
}

export function pauseRun(env: Env, scope: Scope, id: string): Promise<Result<RunView>> {
  return ask(env, scope, id, (run) => run.pause(true));
}

export function resumeRun(env: Env, scope: Scope, id: string): Promise<Result<RunView>> {
  return ask(env, scope, id, (run) => run.pause(false));
}

/** `entry`: in the audit log, which must record how much was released. */
export async function releaseLostCalls(env: Env, scope: Scope, id: string, entry: number): Promise<Result<RunView>> {
  return await ask(env, scope, id, (run) => run.releaseLostCalls(entry));
}

/** Changes the row first: if the object does not exist yet, it is created from the row. */
export async function changeRun(env: Env, scope: Scope, id: string, patch: RunPatch): Promise<Result<RunView>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { max_concurrent, ...named } = patch;
  const { record, object } = found.value;
  if (max_concurrent === undefined) {
    await changeRow(databaseOf(env), scope, id, named);
  } else {
    const endpoint = await getEndpoint(databaseOf(env), scope, record.run.endpoint_id);
    const rollouts = Math.min(max_concurrent, endpoint?.max_concurrent ?? max_concurrent);
    await changeRow(databaseOf(env), scope, id, { ...named, max_concurrent: rollouts });
    await object.setMaxConcurrent(rollouts);
  }
  return await readRun(env, scope, id);
}

export async function retryRun(
  env: Env,
  scope: Scope,
  id: string,
  { classes }: RetryRequest,
  { idempotencyKey, requestHash, requestHashesBefore }: CreateOptions,
): Promise<Result<RunView>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { environment, needs = [] } = found.value.record.run.spec;
  // The project may have taken a grant back since.
  const ungranted = await publishedEnvironments().refuseUngranted(env, scope, {
    id: environment.id,
    needs,
    param: "id",
  });
  if (ungranted !== null) return ungranted;
  const order = {
    classes: classes ?? null,
    key: idempotencyKey,
    hash: requestHash,
    hashes_before: requestHashesBefore,
  };
  const refused = await found.value.object.retry(order);
  return refused === null ? await readRun(env, scope, id) : refusal(id, refused);
}

/** A rollout that has answered or ended is unchanged. */
export async function cancelRollout(env: Env, scope: Scope, id: string): Promise<Result<RolloutView>> {
  const place = placeOfId(env, id);
  if (place === null) return notFound("rollout", id);
  const found = await openRun(env, scope, place.runId);
  if (!found.ok || !(await found.value.object.cancelRollout(place))) return notFound("rollout", id);
  return await readRollout(env, scope, id);
}

async function ask(
  env: Env,
  scope: Scope,
  id: string,
  /** False: the run does not exist. */
  change: (run: RunRpc) => Promise<boolean>,
): Promise<Result<RunView>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  if (!(await change(found.value.object))) return lostRun(id);
  return await readRun(env, scope, id);
}

function refusal(id: string, refused: RetryRefusal): Result<never> {
  switch (refused) {
    case "cancelled":
      return refuse("conflict", `${id} was cancelled and cannot be retried: start another run`, "id");
    case "capped":
      return refuse(
        "conflict",
        `${id} has reached its max_cost_micros: release its lost calls, or start another run`,
        "id",
      );
    case "draining":
      return refuse("in_progress", `${id} is ending: try again when its rollouts have ended`, "id");
    case "training":
      return refuse("conflict", `${id} is a training run: its failed rollouts cannot be retried`, "id");
    case "unknown":
      return lostRun(id);
    case "key_reused":
      return keyReused();
  }
}
