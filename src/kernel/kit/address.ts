/**
 * Which addresses this deployment may call for an organisation, and how calls leave it. Only public https addresses are
 * allowed, unless the deployment also permits its own network; the organisation can restrict them further.
 */

import type { Scope } from "../../contract/scope.ts";
import { guarded, refusedAddress, type Send } from "../clients/outgoing.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { accounts } from "./account-hooks.ts";
import { idsOf, logError } from "./log.ts";
import { SettingsCache } from "./settings-cache.ts";

interface LocalEnv extends Env {
  /** A way to the network that only the local platform has: `fetch` goes through a Worker of Miniflare. */
  readonly NETWORK?: Fetcher;
}

/** Null: any public host. */
export type AllowedHosts = readonly string[] | null;

/** A changed list takes effect everywhere within five seconds. */
const known = new SettingsCache<AllowedHosts>();

/** What the organisation allows. */
export async function allowedHosts(env: Env, { orgId }: Pick<Scope, "orgId">): Promise<AllowedHosts> {
  const asked = { env, orgId, name: orgId, now: Date.now() };
  return await known.get(asked, async () => (await accounts().settingsOf(env, orgId)).allowed_hosts);
}

/**
 * Returns a function that gives `allowedHosts` for each call that environment code makes. If the database does not
 * answer, it gives the list that was read last. The first read happens here, before the code runs: if it fails, the
 * error is not the code's and the caller retries.
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
 * The normalised address of an endpoint. Addresses that differ only in the capitals, port or trailing dot of the host,
 * or in slashes, dots or escapes of the path, give the same text.
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

/** Why this deployment does not call the address (`url_not_allowed`); null if it does. */
export function refusedUrl(env: Env, hosts: AllowedHosts, address: string): string | null {
  const url = URL.parse(address);
  return url === null ? `${address} is not a URL` : refusedAddress(url, privateToo(env), hosts);
}

/** How every outgoing call leaves this deployment. `network`: replaced by tests. */
export function wayOut(env: Env, hosts: AllowedHosts, network: Send = networkOf(env)): Send {
  return guarded(network, privateToo(env), hosts);
}

function networkOf({ NETWORK }: LocalEnv): Send {
  return NETWORK === undefined ? (url, init) => fetch(url, init) : (url, init) => NETWORK.fetch(url, init);
}

function privateToo({ ALLOW_PRIVATE_ENDPOINTS }: Env): boolean {
  return ALLOW_PRIVATE_ENDPOINTS === "true";
}
