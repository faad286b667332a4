/** Addresses this deployment may be sent to, and the way there: public ones, unless its own network is meant as well. */
import { guarded, refusedAddress, type Send } from "../../clients/outgoing.ts";
import { type Result, refuse } from "../contract/refusal.ts";

interface LocalEnv extends Env {
  /** A way to the network that no deployment has: locally `fetch` takes a detour through a Worker of Miniflare's. */
  readonly NETWORK?: Fetcher;
}

export function refuseAddress(env: Env, base_url: string, param: string): Result<never> | null {
  const refused = refusedAddress(new URL(base_url), privateToo(env));
  return refused === null ? null : refuse("url_not_allowed", refused, param);
}

/** Why this deployment does not call the address (`url_not_allowed`); null when it does. */
export function refusedUrl(env: Env, address: string): string | null {
  const url = URL.parse(address);
  return url === null ? `${address} is no URL` : refusedAddress(url, privateToo(env));
}

/** How every call of this deployment leaves it. `network`: sent by another, in tests. */
export function wayOut(env: Env, network: Send = networkOf(env)): Send {
  return guarded(network, privateToo(env));
}

function networkOf({ NETWORK }: LocalEnv): Send {
  return NETWORK === undefined ? (url, init) => fetch(url, init) : (url, init) => NETWORK.fetch(url, init);
}

function privateToo({ ALLOW_PRIVATE_ENDPOINTS }: Env): boolean {
  return ALLOW_PRIVATE_ENDPOINTS === "true";
}
