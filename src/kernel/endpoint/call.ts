/**
 * One call of a rollout's or judge's endpoint: opens the endpoint, calls it within its time, and returns the outcome as
 * a value. A refused key may end the whole run, so before a refusal counts the endpoint is read again without the cache
 * of this isolate.
 */

import {
  AuthenticationError,
  ENDPOINT_MOVED,
  PermissionDeniedError,
  RolloutError,
  serializeError,
} from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { seededRandom } from "../../contract/random.ts";
import type { Scope } from "../../contract/scope.ts";
import { advance, type Rollout } from "../../core/rollout/rollout.ts";
import { type CallOutcome, callModel, type Destination } from "../clients/inference.ts";
import type { Connection, Send } from "../clients/outgoing.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { databaseOf } from "../db/database.ts";
import { getEndpoint, keepRefused } from "../db/endpoints.ts";
import type { EndpointRow } from "../db/schema.ts";
import { noteSettingsChanged } from "../kit/account-hooks.ts";
import { placeOf } from "../kit/address.ts";
import { idsOf, logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";
import { openSealed } from "../kit/sealed-values.ts";
import { SettingsCache } from "../kit/settings-cache.ts";
import type { Refusal, TurnCall, TurnOutcome } from "../messages/endpoint-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { outgoingFor } from "./outgoing.ts";

/** Spreads the retries of calls that waited. */
const SPREAD_MS = 1000;
/** The clock of the endpoint's object may be behind ours: with its time alone a rollout might retry without a pause. */
const HELD_LEAST_MS = 500;

const [BAD_REQUEST, UNPROCESSABLE, TOO_MANY_REQUESTS] = [400, 422, 429];

interface Opened {
  readonly base_url: string;
  readonly api_key: string | null;
  /** Request parameters that it is known to refuse; absent: none. */
  readonly refuses?: readonly string[];
  /** Its own limit of silence, in milliseconds; absent: the deployment's. */
  readonly silence_ms?: number;
}

export interface EndpointAccess extends Opened {
  readonly send: Send;
  /** Called for each reply. */
  readonly openReservation?: () => ReplyReservation;
  /** Remembers a further parameter that it refuses. Absent: every call is sent unchanged. */
  readonly remember?: (name: string) => Promise<void>;
}

/** A changed or deleted key is used for at most five seconds longer, anywhere. */
const opened = new SettingsCache<Opened>();

/** `fresh`: as stored now, without the cache of this isolate. */
export type OpenEndpoint = (fresh: boolean) => Promise<EndpointAccess>;

/** `address`: the address that the run's prices belong to. An endpoint with another address is not called. */
export function endpointOpener(
  env: Env,
  scope: Scope,
  { endpoint_id, address }: { readonly endpoint_id: string; readonly address?: string | undefined },
  now: () => number,
): OpenEndpoint {
  return async (fresh) => {
    if (fresh) forgetEndpoint(scope, endpoint_id);
    const endpoint = await openEndpoint(env, scope, endpoint_id, now());
    if (address === undefined || placeOf(endpoint.base_url) === placeOf(address)) return endpoint;
    throw new EndpointMoved(
      `endpoint ${endpoint_id} changed its address after the run was created, so the run's prices no longer apply: ` +
        "start another run",
    );
  };
}

interface Way {
  readonly open: OpenEndpoint;
  readonly waitMs: number;
  readonly controller: AbortController;
  readonly connection: Connection;
}

export interface EndpointCall extends Way {
  /** Decides how the prompt is sent, before `call`: null if it is decided. */
  readonly decide?: ((where: Omit<Destination, "idempotency_key">) => Promise<CallOutcome | null>) | undefined;
  /** Called when the endpoint is open, right before the call is sent. */
  readonly call: () => TurnCall;
}

/** Throws only temporary errors of the platform itself, such as a database that is down. */
export function callEndpoint({ call, decide, ...way }: EndpointCall): Promise<TurnOutcome> {
  return reachEndpoint(way, async (where) => {
    const stopped = (await decide?.(where)) ?? null;
    if (stopped !== null) return stopped;
    const reached = decide === undefined ? where : { ...where, ...(await openAgain(way.open)) };
    return await callModel({ ...reached, ...call() });
  });
}

/** For a call that leaves some time after the endpoint was opened: its key or its organisation's hosts may have changed. */
async function openAgain(open: OpenEndpoint): Promise<Pick<EndpointAccess, "base_url" | "api_key" | "send">> {
  const { base_url, api_key, send } = await open(false);
  return { base_url, api_key, send };
}

/** The same for any kind of call: `send` makes it when the endpoint is open. */
export async function reachEndpoint<Response>(
  { open, waitMs, controller, connection }: Way,
  send: (where: Omit<Destination, "idempotency_key">) => Promise<CallOutcome<Response>>,
): Promise<TurnOutcome<Response>> {
  const endpoint = await openedOr(open, false);
  if (endpoint instanceof EndpointUnusable) {
    return { kind: "unusable", error: serializeError(endpoint) };
  }
  // The call was aborted meanwhile: it is not sent.
  if (controller.signal.aborted) return { kind: "aborted" };
  const timer = setTimeout(() => controller.abort(), waitMs);
  try {
    const { outcome, refusals } = await adaptedCall({ ...endpoint, connection }, { open, controller, send });
    const adapted = refusals.length > 0 ? { refusals } : {};
    if (outcome.kind !== "failed") return { ...outcome, ...adapted };
    const { refuses: _, besides: __, changed: ___, error, ...failed } = outcome;
    const free = await givenAnotherKey(outcome, endpoint, open);
    return { ...failed, error: serializeError(error), ...(free && { free }), ...adapted };
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return { kind: "unusable", error: serializeError(thrown) };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Makes the call, and repeats it at once without a parameter that the endpoint refuses; each repeat is a call of its
 * own. What was left out is remembered only if a call without it was answered, since an error text may be misleading.
 * Models of one endpoint differ: if one refuses a call because remembered parameters are missing, the call is made
 * unchanged.
 */
async function adaptedCall<Response>(
  { remember, refuses = [], ...first }: EndpointAccess & Pick<Way, "connection">,
  {
    open,
    controller: { signal },
    send,
  }: Pick<Way, "open" | "controller"> & {
    readonly send: (where: Omit<Destination, "idempotency_key">) => Promise<CallOutcome<Response>>;
  },
): Promise<{ readonly outcome: CallOutcome<Response>; readonly refusals: readonly Refusal[] }> {
  const refusals: Refusal[] = [];
  let trial: Trial = { known: refuses, found: [], kept: [] };
  for (let where = first; ; where = { ...first, ...(await openAgain(open)) }) {
    const outcome = await send({ ...where, refuses: [...trial.known, ...trial.found], signal });
    const next = remember === undefined || outcome.kind !== "failed" ? null : nextTrial(trial, outcome);
    if (outcome.kind !== "failed" || next === null) {
      if (outcome.kind === "answered") for (const name of trial.kept) await remember?.(name);
      return { outcome, refusals };
    }
    refusals.push(refusalOf(outcome));
    trial = next;
  }
}

function refusalOf({ error, status, usage }: Failed): Refusal {
  return { error: serializeError(error), ...(status && { status }), ...(usage && { usage }) };
}

/** What a call leaves out: parameters known to be refused before, and those found now. */
interface Trial {
  readonly known: readonly string[];
  readonly found: readonly string[];
  /** Those of `found` that other calls leave out too, if a call without them is answered. */
  readonly kept: readonly string[];
}

/** The next call to try; null if no other call would help. */
function nextTrial(trial: Trial, { refuses: refused, besides = false, changed = false, status }: Failed): Trial | null {
  const { known, found, kept } = trial;
  // A server that streams although it was not asked to gets the same request only once.
  const isNew = refused !== undefined && !found.includes(refused) && !known.includes(refused);
  if (isNew && known.length + found.length < LIMITS.refusedNames) {
    return { known, found: [...found, refused], kept: besides ? kept : [...kept, refused] };
  }
  const mayLack = changed && found.length === 0 && (status === BAD_REQUEST || status === UNPROCESSABLE);
  return mayLack ? { ...trial, known: [] } : null;
}

type Failed = Extract<CallOutcome, { kind: "failed" }>;

async function openedOr(open: OpenEndpoint, fresh: boolean): Promise<EndpointAccess | EndpointUnusable> {
  try {
    return await open(fresh);
  } catch (thrown) {
    if (thrown instanceof EndpointUnusable) return thrown;
    throw thrown;
  }
}

/** True if the key or address was replaced since this isolate opened the endpoint. */
async function givenAnotherKey(
  { error }: Extract<CallOutcome, { kind: "failed" }>,
  used: EndpointAccess,
  open: OpenEndpoint,
): Promise<boolean> {
  if (!(error instanceof AuthenticationError || error instanceof PermissionDeniedError)) return false;
  const stored = await openedOr(open, true);
  if (stored instanceof EndpointUnusable) return false;
  return stored.api_key !== used.api_key || stored.base_url !== used.base_url;
}

/**
 * Endpoints for rollouts. Objects store an endpoint's id, never its key. The sealed key is opened at the call and
 * cached in the isolate's memory, and a changed key or address is in effect after at most five seconds.
 */

/** An error that no retry can fix: the endpoint is deleted, or its key was sealed under another secret. */
export class EndpointUnusable extends RolloutError {
  override readonly name: string = "EndpointUnusable";
}

/** Its owner changed the address after a run was created whose prices belong to the old address. */
class EndpointMoved extends EndpointUnusable {
  override readonly name: string = ENDPOINT_MOVED;
}

export async function openEndpoint(env: Env, scope: Scope, endpointId: string, now: number): Promise<EndpointAccess> {
  const asked = { env, orgId: scope.orgId, name: nameOf(scope, endpointId), now };
  const access = await opened.get(asked, async () => {
    const row = await getEndpoint(databaseOf(env), scope, endpointId);
    if (row === null) throw new EndpointUnusable(`endpoint ${endpointId} does not exist`);
    if (row.deleted_at !== null) throw new EndpointUnusable(`endpoint ${endpointId} was deleted`);
    return await unsealed(env, scope, row);
  });
  const remember = (name: string) => rememberRefused(env, scope, endpointId, access.base_url, name);
  return { ...(await outgoingFor(env, scope)), ...access, remember };
}

/**
 * Later calls leave the parameter out: in this isolate at once, in others after some seconds. If this cannot be stored,
 * each isolate finds it out itself.
 */
async function rememberRefused(env: Env, scope: Scope, id: string, base_url: string, name: string): Promise<void> {
  try {
    await keepRefused(databaseOf(env), scope, { id, base_url, name });
    forgetEndpoint(scope, id);
  } catch (thrown) {
    logError("what an endpoint refuses could not be kept", idsOf({ scope, endpoint_id: id }), thrown);
    return;
  }
  await noteSettingsChanged(env, scope.orgId);
}

/** This isolate reads the endpoint again; others do so within five seconds of a change. */
export function forgetEndpoint(scope: Scope, endpointId: string): void {
  opened.forget(nameOf(scope, endpointId));
}

/** Opens the key. Throws EndpointUnusable if it was sealed under another secret. */
export async function accessOf(env: Env, scope: Scope, row: StoredAccess): Promise<EndpointAccess> {
  return { ...(await outgoingFor(env, scope)), ...(await unsealed(env, scope, row)) };
}

type StoredAccess = Pick<EndpointRow, "id" | "base_url" | "sealed_key" | "refuses" | "silence_limit_s">;

async function unsealed(env: Env, scope: Scope, { id, base_url, sealed_key, ...row }: StoredAccess): Promise<Opened> {
  const { silence_limit_s: seconds } = row;
  const known = { base_url, refuses: row.refuses ?? [], ...(seconds !== null && { silence_ms: seconds * 1000 }) };
  if (sealed_key === null) return { ...known, api_key: null };
  try {
    const api_key = await openSealed(env, { kind: "endpoint", scope, id, sealed: sealed_key });
    return { ...known, api_key };
  } catch (cause) {
    throw new EndpointUnusable(`the key of endpoint ${id} cannot be decrypted`, { cause });
  }
}

function nameOf(scope: Scope, endpointId: string): string {
  return `${scope.orgId}/${scope.projectId}/${endpointId}`;
}

/**
 * Before a failed call is retried, asks the endpoint's object whether the endpoint is down, and waits if so. There is
 * one question per try, and none for calls that do not fail.
 *
 * Invariants. Waiting does not count as a try of `max_retries`. A call waits `LIMITS.endpointWaitMs` in total, however
 * often; then it continues with the tries it has left.
 */

/** Returns the rollout unchanged, or waiting. */
export type HoldCall = (rollout: Rollout) => Promise<Rollout>;

export function callHolder(env: Env, spec: RolloutSpec, now: () => number): HoldCall {
  const { scope, endpoint_id, rollout_id, model } = spec;
  return async (rollout) => {
    const { intent } = rollout;
    if (intent === null || intent.failures === 0) return rollout;
    if (now() >= (intent.held_until ?? Number.POSITIVE_INFINITY)) return rollout;
    // An endpoint that replies 429 is up, and its calls are slowed down by other means.
    const limited = rollout.failed_calls.at(-1)?.status === TOO_MANY_REQUESTS;
    try {
      const endpoint = endpointObject(env, scope, endpoint_id);
      const { again_at } = await endpoint.failing({ rollout_id, model, limited });
      if (again_at === null) return rollout;
      const at = now();
      const not_before = Math.max(again_at, at + HELD_LEAST_MS) + spread(rollout_id);
      return advance(rollout, { type: "held", not_before, until: at + LIMITS.endpointWaitMs });
    } catch (thrown) {
      // Unknown: the call is retried as if the endpoint were up.
      logError("endpoint does not answer", idsOf(spec), thrown);
      return rollout;
    }
  };
}

function spread(rolloutId: string): number {
  return Math.round(SPREAD_MS * seededRandom("held", rolloutId)());
}
