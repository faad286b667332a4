/** Starts the run of a delivery, once: with the trigger's current settings, for the owner of the trigger's runs. */
import type { RunRequest } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import type { CreateOptions } from "../kernel/kit/idempotency.ts";
import { keyedHashes, sha256Hex } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { filled } from "./mapping.ts";
import { getTrigger } from "./queries.ts";
import type { TriggerPlace } from "./rpc.ts";
import type { Pending } from "./store.ts";
import { readRun, within } from "./template.ts";

/** Accepts a run in the same way as POST /v1/runs. */
export type AcceptRun = (
  env: Env,
  scope: Scope,
  request: RunRequest,
  options: CreateOptions,
) => Promise<Result<{ readonly run: { readonly id: string } }>>;

/**
 * Returns the run's id. A repeat returns the same id: the Idempotency-Key is derived from the trigger and the delivery.
 */
export async function beginRun(
  env: Env,
  { scope, trigger_id }: TriggerPlace,
  { delivery_id, filling, origin }: Pick<Pending, "delivery_id" | "filling" | "origin">,
  { accept, now }: { readonly accept: AcceptRun; readonly now: number },
): Promise<Result<string>> {
  const trigger = await getTrigger(databaseOf(env), scope, trigger_id);
  if (trigger === null) return refuse("not_found", "the trigger was deleted", null);
  if (trigger.disabled_at !== null) return triggerDisabled();
  const payer = await accounts().whoStillMay(env, scope, trigger.created_by, "runs:write", now);
  if (payer === null) {
    const message = `${trigger.created_by}, who owns these runs, may no longer start runs: change the trigger's run with another key`;
    return refuse("forbidden", message, null);
  }
  const request = filled(trigger.run, filling);
  if (!request.ok) return refuse("invalid_request", request.message, request.param);
  const read = readRun(request.value);
  if (!read.ok) return { ok: false, error: within("run", read.error) };
  const [requestHash, ...requestHashesBefore] = keyedHashes(env, `${trigger_id} ${delivery_id}`);
  const idempotencyKey = `trigger:${trigger_id}:${sha256Hex(delivery_id)}`;
  const made = { idempotencyKey, requestHash, requestHashesBefore };
  const accepted = await accept(env, scope, read.value, { ...made, now, origin, payer });
  return accepted.ok ? { ok: true, value: accepted.value.run.id } : accepted;
}

export function triggerDisabled(): Result<never> {
  return refuse("conflict", "the trigger is disabled", null);
}
