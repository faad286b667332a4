/**
 * Addresses this deployment may be sent to for an organisation, and the way there: public ones over https, unless its own
 * network is meant as well, and of those what the organisation allows.
 */

import type { Scope } from "../../contract/scope.ts";
import { guarded, refusedAddress, type Send } from "../clients/outgoing.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { accounts } from "./account-hooks.ts";
import { OUTAGE_MS, TtlCache } from "./caches.ts";
import { idsOf, logError } from "./log.ts";

interface LocalEnv extends Env {
  /** A way to the network that no deployment has: locally `fetch` takes a detour through a Worker of Miniflare's. */
  readonly NETWORK?: Fetcher;
}

/** Null: any that is public. */
export type AllowedHosts = readonly string[] | null;

/** A list that is changed holds everywhere within so much time. */
const known = new TtlCache<AllowedHosts>(5000, 4000, OUTAGE_MS);

/** What the organisation allows: at most one read of D1 an isolate, organisation and few seconds. */
export async function allowedHosts(env: Env, { orgId }: Pick<Scope, "orgId">): Promise<AllowedHosts> {
  return await known.get(orgId, Date.now(), async () => (await accounts().settingsOf(env, orgId)).allowed_hosts);
}

/**
 * The same, asked for each call that environment code makes. While the database does not answer it is what was read
 * last: the first time before the code runs, where a failure is not the code's and is tried again.
 */
export async function openAllowedHosts(env: Env, scope: Scope): Promise<() => Promise<AllowedHosts>> {
  let last = await allowedHosts(env, scope);
  return async () => {
    try {
      last = await allowedHosts(env, scope);
    } catch (thrown) {
      logError("allowed hosts are not read anew", idsOf({ scope }), thrown);
    }
    return last;
  };
}

export async function refuseAddress(
  env: Env,
  scope: Scope,
  base_url: string,
  param: string,
): Promise<Result<never> | null> {
  const refused = refusedAddress(new URL(base_url), privateToo(env), await allowedHosts(env, scope));
  return refused === null ? null : refuse("url_not_allowed", refused, param);
}

/**
 * Where calls of an endpoint go, written in one way: addresses that differ only in capitals of the host, its port or its
 * last dot, in slashes, dots or escapes of the path have the same.
 */
export function placeOf(base_url: string): string {
  const { protocol, hostname, port, pathname, search } = new URL(base_url);
  const steps = pathname.split("/").filter((step) => step !== "");
  const at = port === "" ? "" : `:${port}`;
  return `${protocol}//${hostname.replace(/\.+$/, "")}${at}/${steps.map(unescaped).join("/")}${search}`;
}

function unescaped(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch (thrown) {
    if (thrown instanceof URIError) return step;
    throw thrown;
  }
}

/** Why this deployment does not call the address (`url_not_allowed`); null when it does. */
export function refusedUrl(env: Env, hosts: AllowedHosts, address: string): string | null {
  const url = URL.parse(address);
  return url === null ? `${address} is not a URL` : refusedAddress(url, privateToo(env), hosts);
}

/** How every call of this deployment leaves it. `network`: sent by another, in tests. */
export function wayOut(env: Env, hosts: AllowedHosts, network: Send = networkOf(env)): Send {
  return guarded(network, privateToo(env), hosts);
}

function networkOf({ NETWORK }: LocalEnv): Send {
  return NETWORK === undefined ? (url, init) => fetch(url, init) : (url, init) => NETWORK.fetch(url, init);
}

function privateToo({ ALLOW_PRIVATE_ENDPOINTS }: Env): boolean {
  return ALLOW_PRIVATE_ENDPOINTS === "true";
}
