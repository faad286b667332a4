/** Receives a delivery: verifies the sender, evaluates the payload, and passes it to the trigger's object. */
import { parseKeepingNumbers } from "../contract/exact-json.ts";
import type { Json, JsonObject } from "../contract/json.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { PROCESS_SCHEDULER } from "../kernel/kit/fair-scheduler.ts";
import { openSealed } from "../kernel/kit/sealed-values.ts";
import { readId } from "../kernel/kit/secrets.ts";
import { type Refusal, type Result, refuse } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { resolveRun, wantedBy } from "../kernel/service/resolve/resolve-run.ts";
import { checkWhen, filled, fillingOf } from "./mapping.ts";
import { findTrigger, triggerAnywhere } from "./queries.ts";
import type { TriggerPlace, Verdict } from "./rpc.ts";
import { triggerObject } from "./rpc.ts";
import type { TriggerRow } from "./tables.ts";
import { readRun, within } from "./template.ts";
import { verdictOf } from "./verdict.ts";
import { isUnsigned, type Signed, verifyDelivery } from "./verify-delivery.ts";
import type { TriggerReceipt, TriggerTest, TriggerTestRequest } from "./wire.ts";

export interface Posted {
  readonly headers: { readonly get: (name: string) => string | null };
  /** The body, exactly as sent. */
  readonly body: string;
  /** The platform's origin in the request. */
  readonly origin: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Recently read triggers, for requests that must not cost a look-up. */
const read = new LruCache<{ readonly trigger: TriggerRow | null; readonly at: number }>(200);
const READ_MS = 5000;

/** The trigger with this address; null for an unknown id. `mayBeOld`: a result some seconds old is enough. */
export async function findHook(
  env: Env,
  id: string,
  { now, mayBeOld }: { readonly now: number; readonly mayBeOld: boolean },
): Promise<TriggerRow | null> {
  if (readId(env, id)?.kind !== "trigger") return null;
  const known = mayBeOld ? read.get(id) : undefined;
  if (known !== undefined && now - known.at < READ_MS) return known.trigger;
  const trigger = await triggerAnywhere(databaseOf(env), id);
  read.set(id, { trigger, at: now });
  return trigger;
}

/** If the run is refused, that is the answer, and it is logged. `noteRefused` logs an unsigned delivery. */
export async function receiveDelivery(env: Env, trigger: TriggerRow, posted: Posted): Promise<Result<TriggerReceipt>> {
  const of = placeOf(trigger);
  const signed = await verified(env, trigger, posted);
  if (!signed.ok) {
    if (!isUnsigned(signed.error)) await noteRefused(env, trigger, signed.error);
    return signed;
  }
  const { ids, event } = signed.value;
  const delivery = { ids, event, verdict: verdictOn(trigger, signed.value), concurrency: trigger.concurrency };
  const outcome = await triggerObject(env, of).deliver(of, { ...delivery, origin: posted.origin });
  const { run_id, duplicate, state, reason, error } = outcome;
  return error === null ? { ok: true, value: { run_id, duplicate, state, reason } } : { ok: false, error };
}

/** Logs a delivery that cannot be attributed to its sender; only a sample of these is kept. */
export async function noteRefused(env: Env, trigger: TriggerRow, error: Refusal): Promise<void> {
  const of = placeOf(trigger);
  await triggerObject(env, of).refused(of, error);
}

/** What a payload would do. Starts and stores nothing. */
export async function testTrigger(
  env: Env,
  scope: Scope,
  nameOrId: string,
  { payload, body, headers }: TriggerTestRequest,
  now: number,
): Promise<Result<TriggerTest>> {
  const trigger = await findTrigger(databaseOf(env), scope, nameOrId);
  if (trigger === null) return notFound("trigger", nameOrId);
  const text = body ?? JSON.stringify(payload);
  const said = { object: "trigger_test", verified: null, delivery_id: null, event: null } as const;
  const nothing = { ...said, when: [], request: null };
  if (headers === undefined) {
    const json = jsonOf(text);
    if (!json.ok) return { ok: true, value: { ...nothing, would: "refuse", errors: [json.error] } };
    return { ok: true, value: { ...said, ...(await tried(env, trigger, json.value, now)) } };
  }
  const signed = await verified(env, trigger, { headers: new Headers(headers), body: text, now });
  if (!signed.ok) {
    const verified = !isUnsigned(signed.error);
    return { ok: true, value: { ...nothing, verified, would: "refuse", errors: [signed.error] } };
  }
  const { ids, event, ping } = signed.value;
  const known = { object: "trigger_test", verified: true, delivery_id: ids[0], event } as const;
  if (ping) return { ok: true, value: { ...known, would: "answer", when: [], request: null, errors: [] } };
  return { ok: true, value: { ...known, ...(await tried(env, trigger, signed.value.payload, now)) } };
}

type Tried = Pick<TriggerTest, "would" | "when" | "request" | "errors">;

async function tried(env: Env, trigger: TriggerRow, payload: Json, now: number): Promise<Tried> {
  const when = checkWhen(trigger.when, payload) as TriggerTest["when"];
  const refused = (error: Refusal, request: JsonObject | null = null): Tried => {
    return { would: "refuse", when, request, errors: [error] };
  };
  if (when.some(({ holds }) => !holds)) return { would: "ignore", when, request: null, errors: [] };
  const filling = fillingOf(trigger.map, payload);
  if (!filling.ok) return refused({ code: "invalid_request", message: filling.message, param: filling.param });
  const request = filled(trigger.run, filling.value);
  if (!request.ok) return refused({ code: "invalid_request", message: request.message, param: request.param });
  const asked = readRun(request.value);
  if (!asked.ok) return refused(within("run", asked.error), request.value);
  const scope = { orgId: trigger.org_id, projectId: trigger.project_id };
  const resolved = await resolveRun(env, scope, wantedBy(asked.value), now);
  if (!resolved.ok) return refused(resolved.error, request.value);
  return { would: "begin", when, request: request.value, errors: [] };
}

function verdictOn(trigger: TriggerRow, { ping, payload }: Signed): Verdict {
  return ping ? { kind: "answered" } : verdictOf(trigger, payload);
}

function jsonOf(text: string): Result<Json> {
  try {
    return { ok: true, value: parseKeepingNumbers(text) as Json };
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return refuse("invalid_request", "the body is not valid JSON", "body");
  }
}

async function verified(env: Env, trigger: TriggerRow, sent: Omit<Posted, "origin">): Promise<Result<Signed>> {
  const takeTurn = () => PROCESS_SCHEDULER.take(trigger.org_id);
  const secret = await secretOf(env, trigger);
  return await verifyDelivery({ ...sent, scheme: trigger.scheme, secret, takeTurn });
}

async function secretOf(env: Env, trigger: TriggerRow): Promise<string> {
  const { scope } = placeOf(trigger);
  return await openSealed(env, { kind: "trigger", scope, id: trigger.id, sealed: trigger.sealed_secret });
}

function placeOf({ id, org_id, project_id }: TriggerRow): TriggerPlace {
  return { scope: { orgId: org_id, projectId: project_id }, trigger_id: id };
}
