/**
 * Implements `can.fetch`, the HTTP calls of environment code. The code runs in the platform's network, so an address
 * must be public unless the deployment permits its own network. A redirect is an error that names its target. A reply
 * is read up to a limit, so that a server cannot fill the isolate's memory.
 */

import { EnvError, InfraError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Capabilities, FetchOptions } from "../../core/environments/contract.ts";
import type { Fetched, RolloutHost } from "../../core/protocol/environment-code.ts";
import { LongBodyError, PausedBodyError, wholeText } from "../clients/bounded-body.ts";
import { AddressRefused, type Connection, type Send, UNLIMITED } from "../clients/outgoing.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { type AllowedHosts, refusedUrl, wayOut } from "./address.ts";
import { signedHeaders } from "./sign-webhook.ts";

const REDIRECTS = [301, 302, 303, 307, 308];

export interface FetchMeans {
  /** The hosts that the organisation allows. Called for each request; never throws (`openAllowedHosts`). */
  readonly hosts: () => Promise<AllowedHosts>;
  readonly now: () => number;
  readonly secret: Capabilities["secret"];
  /** Makes the call when a turn is free; default: at once. */
  readonly turn?: <T>(call: (connection: Connection) => Promise<T>) => Promise<T>;
  /** Memory for each reply, for which it waits as a part of its time; absent: none is reserved. */
  readonly openReservation?: () => ReplyReservation;
  /** Aborts calls whose result is no longer needed; called for each request. */
  readonly signal?: () => AbortSignal;
  /** The network to send by, replaced by tests. */
  readonly send?: Send;
}

export function guardedFetch(env: Env, means: FetchMeans): RolloutHost["fetch"] {
  const { turn = (call) => call(UNLIMITED) } = means;
  // The deadline and the signature count from the moment when the call leaves.
  return async (url, options = {}) =>
    await turn((connection) => fetchOnce(env, url, options, { ...means, connection }));
}

async function fetchOnce(
  env: Env,
  url: string,
  { sign, timeoutMs, until, ...init }: FetchOptions,
  means: FetchMeans & { readonly connection: Connection },
): Promise<Fetched> {
  const { hosts: ask, now, secret, signal: given, send, connection, openReservation } = means;
  const hosts = await ask();
  const refused = refusedUrl(env, hosts, url);
  if (refused !== null) throw notAllowed(refused);
  const signed = sign && signedHeaders(secret(sign.secret), sign.id, init.body ?? "", now());
  const waitMs = Math.min(timeoutMs ?? LIMITS.fetchMs, LIMITS.fetchMs);
  const controller = new AbortController();
  const hungUp = given?.();
  const { signal } = controller;
  const hangUp = () => controller.abort();
  hungUp?.addEventListener("abort", hangUp);
  if (hungUp?.aborted) hangUp();
  const sent = { ...init, headers: { ...init.headers, ...signed }, signal };
  const timer = setTimeout(() => controller.abort(), waitMs);
  const reservation = openReservation?.();
  let characters = 0;
  try {
    const reply = await connection.request(() => wayOut(env, hosts, send)(new URL(url), sent), signal);
    await refuseRedirect(reply, url);
    const { status, headers } = reply;
    const enough = async (piece: string) => {
      characters += piece.length;
      await reservation?.grow(characters, LIMITS.fetchedBytes, signal);
      return until?.(piece, { status, headers }) ?? false;
    };
    const text = await wholeText(reply, LIMITS.fetchedBytes, undefined, enough);
    return { status, headers: [...headers], text };
  } catch (thrown) {
    if (hungUp?.aborted) throw new InfraError(`the request to ${url} was aborted`);
    const late = `${url} did not answer within ${waitMs / 1000} s`;
    if (signal.aborted)
      throw new InfraError(reservation?.isWaiting() ? `${late}: there was no memory for its reply` : late);
    throw faultOf(thrown, url);
  } finally {
    clearTimeout(timer);
    reservation?.leave();
    hungUp?.removeEventListener("abort", hangUp);
  }
}

function faultOf(thrown: unknown, url: string): unknown {
  if (thrown instanceof AddressRefused) return notAllowed(thrown.message);
  if (thrown instanceof LongBodyError) return new EnvError(`${url} answered with ${thrown.message}`);
  if (thrown instanceof PausedBodyError) return new InfraError(`${url}: ${thrown.message}`);
  return thrown;
}

function notAllowed(why: string): EnvError {
  return new EnvError(`fetch: url_not_allowed: ${why}`);
}

/** A redirect is an error: its target was not checked, and the caller did not name it. */
async function refuseRedirect(reply: Response, url: string): Promise<void> {
  const to = reply.headers.get("location");
  if (!REDIRECTS.includes(reply.status) || to === null) return;
  await reply.body?.cancel();
  throw new EnvError(
    `${nameOf(url)} answered ${reply.status} and redirects to ${nameOf(to, url)}: redirects are not followed. ` +
      "Use that address instead, also where this one is declared (an argument, needs)",
  );
}

/** Scheme, server and path. The query is left out, because it may hold a secret. */
function nameOf(url: string, base?: string): string {
  const parsed = URL.parse(url, base);
  return parsed === null ? "no address" : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
