/**
 * One call of a rollout's endpoint, wherever it is awaited: opened, called within its time, and its outcome made plain.
 * A refused key ends the whole run, so the endpoint is opened once more past this isolate's memory before it is believed.
 */
import { type CallOutcome, callModel, type Destination } from "../../clients/inference.ts";
import { AuthenticationError, serializeError } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import type { TurnCall, TurnOutcome } from "../contract/endpoint-wire.ts";
import { type EndpointAccess, EndpointUnusable, forgetEndpoint, openEndpoint } from "./endpoints.ts";

/** `fresh`: as it is stored now, whatever this isolate remembers. */
export type OpenEndpoint = (fresh: boolean) => Promise<EndpointAccess>;

export function endpointOpener(env: Env, scope: Scope, endpointId: string, now: () => number): OpenEndpoint {
  return async (fresh) => {
    if (fresh) forgetEndpoint(scope, endpointId);
    return await openEndpoint(env, scope, endpointId, now());
  };
}

interface Way {
  readonly open: OpenEndpoint;
  readonly waitMs: number;
  readonly controller: AbortController;
}

export interface EndpointCall extends Way {
  /** Made when the endpoint is open, right before the call leaves. */
  readonly call: () => TurnCall;
}

/** Throws only what passes and is the platform's own, such as a database that is down. */
export function callEndpoint({ call, ...way }: EndpointCall): Promise<TurnOutcome> {
  return reachEndpoint(way, (where) => callModel({ ...where, ...call() }));
}

/** The same for any kind of call: `send` makes it when the endpoint is open. */
export async function reachEndpoint<Response>(
  { open, waitMs, controller }: Way,
  send: (where: Omit<Destination, "idempotency_key">) => Promise<CallOutcome<Response>>,
): Promise<TurnOutcome<Response>> {
  const endpoint = await openedOr(open, false);
  if (endpoint instanceof EndpointUnusable) {
    return { kind: "unusable", error: serializeError(endpoint) };
  }
  const timer = setTimeout(() => controller.abort(), waitMs);
  try {
    const outcome = await send({ ...endpoint, signal: controller.signal });
    if (outcome.kind !== "failed") return outcome;
    const free = await givenAnotherKey(outcome, endpoint, open);
    return { ...outcome, error: serializeError(outcome.error), ...(free && { free }) };
  } finally {
    clearTimeout(timer);
  }
}

async function openedOr(open: OpenEndpoint, fresh: boolean): Promise<EndpointAccess | EndpointUnusable> {
  try {
    return await open(fresh);
  } catch (thrown) {
    if (thrown instanceof EndpointUnusable) return thrown;
    throw thrown;
  }
}

/** Replaced since this isolate opened it. */
async function givenAnotherKey(
  { error }: Extract<CallOutcome, { kind: "failed" }>,
  used: EndpointAccess,
  open: OpenEndpoint,
): Promise<boolean> {
  if (!(error instanceof AuthenticationError)) return false;
  const stored = await openedOr(open, true);
  if (stored instanceof EndpointUnusable) return false;
  return stored.api_key !== used.api_key || stored.base_url !== used.base_url;
}
