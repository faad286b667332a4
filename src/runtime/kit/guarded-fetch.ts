/**
 * `can.fetch`: where environment code may call. It runs in the platform's network, so an address must be a public one
 * unless the deployment says that its own network is meant; a redirect is followed only to such an address, and takes
 * to another server only headers that are known to be harmless. A reply is read up to a limit: what a server sends must not fill the isolate.
 */
import { LongBodyError, PausedBodyError, wholeText } from "../../clients/bounded-body.ts";
import { AddressRefused, type Send, type Sent } from "../../clients/outgoing.ts";
import { EnvError, InfraError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Capabilities, FetchOptions } from "../../core/environments/contract.ts";
import { type AllowedHosts, refusedUrl, wayOut } from "./address.ts";

/** A secret with this prefix is base64 of the key; any other is the key itself, as UTF-8. */
const PREFIX = "whsec_";

const MOST_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Headers that another server may be sent: any other may say who is asking, whatever it is called. */
const HARMLESS = /^(accept|accept-language|content-type|idempotency-key|user-agent)$/i;

export interface FetchMeans {
  /** What the organisation allows; asked for each call, and never throws (`openAllowedHosts`). */
  readonly hosts: () => Promise<AllowedHosts>;
  readonly now: () => number;
  readonly secret: Capabilities["secret"];
  /** Makes a call when it is its turn; default: at once. */
  readonly turn?: <T>(call: () => Promise<T>) => Promise<T>;
  /** Ends calls that nobody waits for any more; asked for each call. */
  readonly signal?: () => AbortSignal;
  /** The network to send by, replaced by tests. */
  readonly send?: Send;
}

export function guardedFetch(env: Env, means: FetchMeans): Capabilities["fetch"] {
  const { turn = (call) => call() } = means;
  // Deadline and signature count from the moment the call leaves.
  return async (url, options = {}) => await turn(() => fetchOnce(env, url, options, means));
}

async function fetchOnce(
  env: Env,
  url: string,
  { sign, timeoutMs, redirect = "follow", ...init }: FetchOptions,
  { hosts: ask, now, secret, signal: given, send }: FetchMeans,
): ReturnType<Capabilities["fetch"]> {
  const hosts = await ask();
  const refused = refusedUrl(env, hosts, url);
  if (refused !== null) throw notAllowed(refused);
  const signed = sign && (await signedHeaders(secret(sign.secret), sign.id, init.body ?? "", now()));
  const waitMs = Math.min(timeoutMs ?? LIMITS.fetchMs, LIMITS.fetchMs);
  const controller = new AbortController();
  const hungUp = given?.();
  const { signal } = controller;
  const hangUp = () => controller.abort();
  hungUp?.addEventListener("abort", hangUp);
  if (hungUp?.aborted) hangUp();
  const first = { ...init, headers: { ...init.headers, ...signed }, signal };
  const timer = setTimeout(() => controller.abort(), waitMs);
  try {
    const hops = redirect === "manual" ? 0 : MOST_REDIRECTS;
    const reply = await follow(new URL(url), first, hops, wayOut(env, hosts, send));
    const text = await wholeText(reply, LIMITS.fetchedBytes);
    return { status: reply.status, headers: reply.headers, text: async () => text };
  } catch (thrown) {
    if (hungUp?.aborted) throw new InfraError(`nobody waits for ${url} any more`);
    if (signal.aborted) throw new InfraError(`${url} did not answer within ${waitMs / 1000} s`);
    throw faultOf(thrown, url);
  } finally {
    clearTimeout(timer);
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

type Asked = Omit<Sent, "headers"> & { readonly headers: Readonly<Record<string, string>> };

/** The reply at the end of at most `hops` redirects; with none, the reply whatever it is. */
async function follow(url: URL, init: Asked, hops: number, send: Send): Promise<Response> {
  let [at, sent] = [url, init];
  for (let hop = 0; ; hop += 1) {
    const reply = await send(at, sent);
    const to = reply.headers.get("location");
    if (hops === 0 || !REDIRECTS.includes(reply.status) || to === null) return reply;
    await reply.body?.cancel();
    if (hop === hops) throw new EnvError(`${url.href} leads on more than ${hops} times`);
    const next = new URL(to, at);
    sent = redirect(sent, reply.status, next.origin === at.origin);
    at = next;
  }
}

/** As the fetch standard has it: what was posted is asked for again as a GET, but after 307 and 308. */
function redirect({ signal, ...init }: Asked, status: number, sameServer: boolean): Asked {
  const headers = Object.fromEntries(
    Object.entries(init.headers).filter(([name]) => sameServer || HARMLESS.test(name)),
  );
  if (status === 307 || status === 308) return { ...init, signal, headers };
  return { signal, headers, method: init.method === "HEAD" ? "HEAD" : "GET" };
}

/**
 * Signs a request by Standard Webhooks 1.0.0 (standardwebhooks.com): its receiver checks with any library of that name
 * who sent it, that nothing was changed, and, by time and id, that it is not an old one sent again.
 */

/** `id`: the same for every repeat of the request, without a ".". `now`: epoch milliseconds. */
export async function signedHeaders(
  secret: string,
  id: string,
  body: string,
  now: number,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", keyOf(secret), algorithm, false, ["sign"]);
  const text = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signature = Buffer.from(await crypto.subtle.sign("HMAC", key, text)).toString("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}

function keyOf(secret: string): Uint8Array {
  const key = secret.startsWith(PREFIX)
    ? Buffer.from(secret.slice(PREFIX.length), "base64")
    : Buffer.from(secret, "utf8");
  if (key.length > 0) return key;
  throw new Error(`a signing secret is text, or ${PREFIX} and base64: set it again`);
}
