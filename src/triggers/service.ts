/**
 * Creates, changes and deletes triggers. A trigger's run is checked when it is created, as far as possible without a
 * payload. The caller who creates a trigger, or changes its run or its secret, owns the runs: nobody can start runs at
 * another's cost.
 */
import type { Caller } from "../contract/identity.ts";
import { permits } from "../contract/identity.ts";
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { faultInSecret } from "../contract/signing-secret.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { given } from "../kernel/kit/given.ts";
import type { CreateOptions, Made } from "../kernel/kit/idempotency.ts";
import { minting, seal, sealContext } from "../kernel/kit/secrets.ts";
import { projectGone, type Result, refuse } from "../kernel/messages/refusal.ts";
import { createInProject } from "../kernel/service/create-in-project.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { resolveRun, wantedBy } from "../kernel/service/resolve/resolve-run.ts";
import {
  deleteTrigger as deleteRow,
  findTrigger,
  insertTrigger,
  type NewTrigger,
  type TriggerChanges,
  updateTrigger,
} from "./queries.ts";
import type { LoggedDelivery } from "./rpc.ts";
import { triggerObject } from "./rpc.ts";
import { checkSchedule } from "./schedule.ts";
import type { TriggerRow } from "./tables.ts";
import { checkTemplate } from "./template.ts";
import type { CreatedTrigger, TriggerPatch, TriggerRequest, TriggerSchedule } from "./wire.ts";

const SECRET_BYTES = 32;

type Template = Pick<TriggerRow, "run" | "map" | "when">;

export async function createTrigger(
  env: Env,
  scope: Scope,
  caller: Caller,
  request: TriggerRequest,
  options: CreateOptions,
): Promise<Result<Made<TriggerRow> & { readonly once: Pick<CreatedTrigger, "secret"> }>> {
  const { name, verify, concurrency, schedule } = request;
  const { now, origin = "" } = options;
  const secret = verify.secret === undefined ? newSecret() : null;
  const change = crypto.randomUUID();
  const made = await createInProject(env, scope, options, {
    operation: "createTrigger",
    find: (id) => findTrigger(databaseOf(env), scope, id),
    async make(): Promise<Result<NewTrigger>> {
      const template = templateOf(request);
      const refused =
        refusePayer(caller) ?? refuseSchedule(schedule, now) ?? (await refuseTemplate(env, scope, template, now));
      if (refused !== null) return refused;
      const id = mintId("tr", minting(env, now, scope.orgId));
      const row = {
        ...{ id, name, scheme: verify.scheme, concurrency, schedule, ...template },
        sealed_secret: await seal(env, secret ?? verify.secret ?? "", sealContext(scope, id)),
        ...{ created_by: caller.who, created_at: now, updated_at: now, disabled_at: null },
      };
      return { ok: true, value: row };
    },
    async insert(trigger, key) {
      const of = { scope, trigger_id: trigger.id };
      if (schedule !== null) await triggerObject(env, of).expectChange(of, origin, change);
      return await insertTrigger(databaseOf(env), scope, trigger, key);
    },
    refusals: { taken: () => nameTaken(name), gone: projectGone, full: tooMany },
  });
  if (!made.ok) return made;
  const of = { scope, trigger_id: made.value.value.id };
  if (schedule !== null) await triggerObject(env, of).changed(of, change);
  return { ok: true, value: { ...made.value, once: { secret: made.value.replayed ? null : secret } } };
}

function tooMany(): Result<never> {
  return refuse(
    "conflict",
    `the project already has ${LIMITS.triggersPerProject} triggers, the maximum: delete some first`,
    null,
  );
}

/**
 * Changes only the fields of the patch. Waiting deliveries use the settings at the time when they start. Renaming and
 * disabling start no runs; every other change needs a key that may start runs.
 */
export async function changeTrigger(
  env: Env,
  scope: Scope,
  caller: Caller,
  before: TriggerRow,
  patch: TriggerPatch,
  { now, origin }: { readonly now: number; readonly origin: string },
): Promise<Result<TriggerRow>> {
  const { secret, disabled, run, map, when, schedule, ...plain } = patch;
  const template = given({ run, map, when }) as Partial<Template>;
  const begins = Object.keys(template).length > 0;
  const refused = await refusePatch(env, scope, caller, { before, patch, now });
  if (refused !== null) return refused;
  const changes: TriggerChanges = {
    ...given(plain),
    ...(schedule !== undefined && { schedule }),
    ...template,
    ...((begins || secret !== undefined || schedule !== undefined) && { created_by: caller.who }),
    ...(secret !== undefined && { sealed_secret: await seal(env, secret, sealContext(scope, before.id)) }),
    ...(disabled !== undefined && { disabled_at: disabled ? (before.disabled_at ?? now) : null }),
    updated_at: now,
  };
  const of = { scope, trigger_id: before.id };
  const change = crypto.randomUUID();
  if (schedule != null || before.schedule !== null) await triggerObject(env, of).expectChange(of, origin, change);
  const after = await updateTrigger(databaseOf(env), scope, before.id, changes);
  if (after === null) return notFound("trigger", before.name);
  if (after === "taken") return nameTaken(patch.name ?? before.name);
  await triggerObject(env, of).changed(of, change);
  return { ok: true, value: after };
}

/** The reason why a patch is refused; null if it is not. */
async function refusePatch(
  env: Env,
  scope: Scope,
  caller: Caller,
  { before, patch, now }: { readonly before: TriggerRow; readonly patch: TriggerPatch; readonly now: number },
): Promise<Result<never> | null> {
  const { secret, run, map, when, schedule = null } = patch;
  const template = given({ run, map, when }) as Partial<Template>;
  const begins = Object.keys(template).length > 0;
  const harmless = Object.entries(patch).every(([field, value]) => field === "name" || (field === "disabled" && value));
  return (
    (harmless ? null : refusePayer(caller)) ??
    refuseSecret(before, secret) ??
    refuseSchedule(schedule, now) ??
    (begins ? await refuseTemplate(env, scope, { ...before, ...template }, now) : null)
  );
}

function refuseSchedule(schedule: TriggerSchedule | null, now: number): Result<never> | null {
  const checked = schedule === null ? null : checkSchedule(schedule, now);
  return checked === null || checked.ok ? null : checked;
}

/** A patch has no scheme, so its secret is checked here. For a new trigger, the contract checks it. */
function refuseSecret({ scheme }: TriggerRow, secret: string | undefined): Result<never> | null {
  const fault = secret === undefined ? null : faultInSecret(scheme, secret);
  return fault === null ? null : refuse("invalid_request", `secret: ${fault}`, "secret");
}

/** Waiting deliveries start no runs; started runs continue. After a kill in between, delete it again. */
export async function deleteTrigger(env: Env, scope: Scope, { id }: TriggerRow): Promise<Result<null>> {
  await triggerObject(env, { scope, trigger_id: id }).free();
  await deleteRow(databaseOf(env), scope, id);
  return { ok: true, value: null };
}

/** The log, newest first, and the trigger's id. */
export async function readTriggerDeliveries(
  env: Env,
  scope: Scope,
  nameOrId: string,
  page: { readonly before: number | null; readonly limit: number },
): Promise<Result<{ trigger_id: string; deliveries: LoggedDelivery[] }>> {
  const found = await findTrigger(databaseOf(env), scope, nameOrId);
  if (found === null) return notFound("trigger", nameOrId);
  const deliveries = await triggerObject(env, { scope, trigger_id: found.id }).log(page);
  return { ok: true, value: { trigger_id: found.id, deliveries } };
}

function refusePayer({ permissions, runId }: Caller): Result<never> | null {
  if (runId === null && permits(permissions, "runs:write")) return null;
  return refuse("forbidden", "a trigger starts runs for you: this key lacks the scope runs:write", null);
}

/** Checks the run with placeholders for payload values. Errors in mapped fields are left to the payload. */
async function refuseTemplate(env: Env, scope: Scope, template: Template, now: number): Promise<Result<never> | null> {
  const { run, map, when } = template;
  const checked = checkTemplate(run, map, when);
  if (!checked.ok) return { ok: false, error: checked.error };
  if (checked.sample === null) return null;
  // Whether a cost cap can be kept is checked when a run starts: its endpoints may get prices until then.
  const { max_cost_micros: _, ...wanted } = wantedBy(checked.sample);
  const resolved = await resolveRun(env, scope, wanted, now);
  if (resolved.ok) return null;
  const { error } = resolved;
  const filledIn = Object.keys(map).map((target) => target.split(".")[0] ?? "");
  const about = error.param?.split(/[.[]/)[0] ?? null;
  const open = about === null ? filledIn.some((name) => !TELLING_NOTHING.includes(name)) : filledIn.includes(about);
  if (open) return null;
  const param = error.param === null ? "run" : `run.${error.param}`;
  return { ok: false, error: { ...error, message: `run: ${error.message}`, param } };
}

/** Fields on which no other field depends. */
const TELLING_NOTHING: readonly string[] = ["metadata", "name", "seed"];

/** The request was parsed by JSON.parse, so it is JSON. */
function templateOf({ run, map, when }: TriggerRequest): Template {
  return { run: run as JsonObject, map, when };
}

function newSecret(): string {
  return `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))).toString("base64")}`;
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `a trigger called ${name} already exists`, "name");
}
