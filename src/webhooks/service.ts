/**
 * Creates, shows, changes and deletes webhook endpoints, and replays deliveries. A secret is sealed, and shown once.
 */
import type { Caller } from "../contract/identity.ts";
import { permits } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { refuseAddress } from "../kernel/kit/address.ts";
import { given } from "../kernel/kit/given.ts";
import type { CreateOptions, Made } from "../kernel/kit/idempotency.ts";
import { minting, seal, sealContext } from "../kernel/kit/secrets.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { keyReused, projectGone, type Result, refuse } from "../kernel/messages/refusal.ts";
import { createInProject } from "../kernel/service/create-in-project.ts";
import { noteProject } from "../kernel/service/note-project.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { forgetListening } from "./emit.ts";
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  type NewWebhook,
  type NewWebhookSecret,
  rotateWebhookSecret,
  type SecretEnd,
  secretEndsOfWebhooks,
  updateWebhook,
} from "./queries.ts";
import { webhookObject } from "./rpc.ts";
import { messageId } from "./rules.ts";
import type { WebhookEndpointRow } from "./tables.ts";
import {
  type CreatedWebhook,
  type DeliveriesQuery,
  type Replayed,
  type ReplayRequest,
  TEST_EVENT,
  type WebhookBacklog,
  type WebhookDelivery,
  type WebhookPatch,
  type WebhookRequest,
  type WebhookView,
} from "./wire.ts";

const SECRET_BYTES = 32;

export async function createWebhook(
  env: Env,
  scope: Scope,
  caller: Caller,
  request: WebhookRequest,
  options: CreateOptions,
): Promise<Result<Made<WebhookEndpointRow> & { readonly once: Pick<CreatedWebhook, "secret"> }>> {
  const { now } = options;
  const id = mintId("whe", minting(env, now));
  const { row: secret, text } = await mintSecret(env, scope, id, now);
  const made = await createInProject(env, scope, options, {
    operation: "createWebhookEndpoint",
    find: (known) => findWebhook(databaseOf(env), scope, known),
    async make(): Promise<Result<NewWebhook>> {
      const refused = refuseBudgets(caller, request.events) ?? (await refuseAddress(env, scope, request.url, "url"));
      if (refused !== null) return refused;
      const times = { created_at: now, updated_at: now };
      return { ok: true, value: { id, ...request, disabled_at: null, disabled_reason: null, ...times } };
    },
    insert: (webhook, key) => insertWebhook(databaseOf(env), scope, { webhook, secret }, key),
    refusals: { taken: keyReused, gone: projectGone, full: tooMany },
  });
  if (!made.ok) return made;
  if (made.value.replayed) return { ok: true, value: { ...made.value, once: { secret: null } } };
  forgetListening(scope);
  await noteProject(env, scope, now);
  return { ok: true, value: { ...made.value, once: { secret: text } } };
}

function tooMany(): Result<never> {
  const message = `the project already has ${LIMITS.webhooksPerProject} webhook endpoints, the maximum: delete some first`;
  return refuse("conflict", message, null);
}

/** Changes only the given fields. The endpoint's object sees it immediately, senders of events within five seconds. */
export async function changeWebhook(
  env: Env,
  scope: Scope,
  caller: Caller,
  before: WebhookEndpointRow,
  { disabled, ...patch }: WebhookPatch,
  now: number,
): Promise<Result<WebhookEndpointRow>> {
  const { id } = before;
  const refused =
    refuseBudgets(caller, before.events) ??
    refuseBudgets(caller, patch.events ?? null) ??
    (patch.url === undefined ? null : await refuseAddress(env, scope, patch.url, "url"));
  if (refused !== null) return refused;
  const after = await updateWebhook(databaseOf(env), scope, id, {
    ...given(patch),
    ...able(before, disabled, now),
    updated_at: now,
  });
  if (after === null) return unknown(id);
  forgetListening(scope);
  await webhookObject(env, scope, id).changed({ scope, webhook_id: id });
  return { ok: true, value: after };
}

/** Adds a new secret; the previous ones also sign until the overlap ends. */
export async function rotateWebhook(
  env: Env,
  scope: Scope,
  id: string,
  caller: Caller,
  overlap_s: number,
  now: number,
): Promise<Result<CreatedWebhook>> {
  const before = await findWebhook(databaseOf(env), scope, id);
  if (before === null) return unknown(id);
  const refused = refuseBudgets(caller, before.events);
  if (refused !== null) return refused;
  const { row: secret, text } = await mintSecret(env, scope, id, now);
  const outcome = await rotateWebhookSecret(databaseOf(env), scope, { secret, ends: now + overlap_s * 1000 });
  if (outcome === "gone") return unknown(id);
  if (outcome === "full") {
    const message = `the endpoint already has ${LIMITS.webhookSecrets} secrets, the maximum: wait until one expires, or rotate with overlap_s 0`;
    return refuse("conflict", message, "overlap_s");
  }
  await webhookObject(env, scope, id).changed({ scope, webhook_id: id });
  return { ok: true, value: { ...(await oneViewOf(env, scope, before, now)), secret: text } };
}

export async function removeWebhook(env: Env, scope: Scope, { id }: WebhookEndpointRow): Promise<Result<null>> {
  // If a kill happens in between, the object finds no row later and frees itself.
  await deleteWebhook(databaseOf(env), scope, id);
  forgetListening(scope);
  await webhookObject(env, scope, id).free();
  return { ok: true, value: null };
}

export async function readDeliveries(
  env: Env,
  scope: Scope,
  id: string,
  query: DeliveriesQuery,
): Promise<Result<{ data: WebhookDelivery[]; has_more: boolean }>> {
  if ((await findWebhook(databaseOf(env), scope, id)) === null) return unknown(id);
  const page = await webhookObject(env, scope, id).deliveries(query);
  return page === null
    ? refuse("invalid_request", "after: is not the id of a delivery", "after")
    : { ok: true, value: page };
}

export async function replayDelivery(
  env: Env,
  scope: Scope,
  id: string,
  msg: string,
): Promise<Result<WebhookDelivery>> {
  const refused = await refuseDisabled(env, scope, id);
  if (refused !== null) return refused;
  const delivery = await webhookObject(env, scope, id).replayOne(msg);
  if (delivery === null) return notFound("delivery", msg);
  if (delivery.state === "pending") return { ok: true, value: delivery };
  return refuse("conflict", "too many deliveries are already pending", null);
}

export async function replayDeliveries(
  env: Env,
  scope: Scope,
  id: string,
  { after, before, states }: ReplayRequest,
  now: number,
): Promise<Result<Replayed>> {
  const refused = await refuseDisabled(env, scope, id);
  if (refused !== null) return refused;
  const until = before === undefined ? now : before * 1000;
  const order = { after: after * 1000, before: until, states };
  const replayed = await webhookObject(env, scope, id).replay(order);
  return { ok: true, value: { object: "webhook_replay", id, replayed } };
}

/** Sends an event to this endpoint only, whatever its event filter. */
export async function testWebhook(env: Env, scope: Scope, id: string, now: number): Promise<Result<WebhookDelivery>> {
  const refused = await refuseDisabled(env, scope, id);
  if (refused !== null) return refused;
  const object = webhookObject(env, scope, id);
  const event = { id: mintId("evt", minting(env, now)), type: TEST_EVENT, at: now, subject: id };
  const data = { webhook_endpoint_id: id, message: "this is a test" };
  await object.enqueue({ scope, webhook_id: id }, [{ ...event, data }]);
  const delivery = await object.delivery(messageId(event, id));
  return delivery === null ? unknown(id) : { ok: true, value: delivery };
}

async function refuseDisabled(env: Env, scope: Scope, id: string): Promise<Result<never> | null> {
  const row = await findWebhook(databaseOf(env), scope, id);
  if (row === null) return unknown(id);
  if (row.disabled_at === null) return null;
  return refuse("conflict", `${id} is disabled: PATCH it with "disabled": false first`, null);
}

/**
 * Endpoints that name budget events receive the organisation's budgets, so only callers with `billing:write` for the
 * whole organisation may create or change them.
 */
function refuseBudgets({ projectId, permissions }: Caller, events: readonly string[] | null): Result<never> | null {
  if (!events?.some((name) => name.startsWith("budget."))) return null;
  if (projectId === null && permits(permissions, "billing:write")) return null;
  const message =
    "events: budget.* includes the organisation's budgets, which needs the scope billing:write and a key of the whole organisation";
  return refuse("forbidden", message, "events");
}

function able(before: WebhookEndpointRow, disabled: boolean | undefined, now: number) {
  if (disabled === undefined || disabled === (before.disabled_at !== null)) return {};
  return disabled
    ? { disabled_at: now, disabled_reason: "somebody disabled it" }
    : { disabled_at: null, disabled_reason: null };
}

async function mintSecret(env: Env, scope: Scope, webhook_id: string, now: number) {
  const mint = minting(env, now);
  const id = mintId("whs", mint);
  const text = `whsec_${Buffer.from(mint.random(SECRET_BYTES)).toString("base64")}`;
  const sealed_secret = await seal(env, text, sealContext(scope, id));
  const row: NewWebhookSecret = { id, webhook_id, sealed_secret, expires_at: null, created_at: now };
  return { row, text };
}

async function oneViewOf(env: Env, scope: Scope, row: NewWebhook, now: number): Promise<WebhookView> {
  const ends = await secretEndsOfWebhooks(databaseOf(env), scope, [row.id], now);
  return viewOf(row, ends, await webhookObject(env, scope, row.id).backlog());
}

/** With their pending deliveries, in the same order. `now`: epoch milliseconds. */
export async function showWebhooks(
  env: Env,
  scope: Scope,
  rows: readonly NewWebhook[],
  now: number,
): Promise<WebhookView[]> {
  const ids = rows.map(({ id }) => id);
  const ends = await secretEndsOfWebhooks(databaseOf(env), scope, ids, now);
  const backlogs = await new Subrequests().objectAll(rows, ({ id }) => webhookObject(env, scope, id).backlog());
  return rows.flatMap((row, index) => {
    const backlog = backlogs[index];
    return backlog === undefined ? [] : [viewOf(row, ends, backlog)];
  });
}

function viewOf(row: NewWebhook, ends: readonly SecretEnd[], backlog: WebhookBacklog): WebhookView {
  const { id, url, description, events, disabled_at, disabled_reason, created_at, updated_at } = row;
  const own = ends.filter(({ webhook_id }) => webhook_id === id);
  return {
    ...{ object: "webhook_endpoint", id, url, description, events: events === null ? null : [...events] },
    ...{ disabled_at: disabled_at === null ? null : seconds(disabled_at), disabled_reason },
    secrets: own.map(({ expires_at }) => ({ expires_at: expires_at === null ? null : seconds(expires_at) })),
    ...{ backlog, created_at: seconds(created_at), updated_at: seconds(updated_at) },
  };
}

function unknown(id: string): Result<never> {
  return notFound("webhook endpoint", id);
}
