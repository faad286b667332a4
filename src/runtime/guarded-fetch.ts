/**
 * `can.fetch`: where environment code may call. It runs in the platform's network, so an address must be a public one
 * unless the deployment says that its own network is meant; a redirect is followed only to such an address, and takes
 * no credentials to another server.
 */
import type { Capabilities } from "../core/environments/contract.ts";
import { EnvError } from "../core/errors.ts";
import { refuseAddress } from "./address.ts";

const MOST_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Headers that say who is asking. */
const CREDENTIALS = /^(authorization|proxy-authorization|cookie)$/i;

type Init = NonNullable<Parameters<Capabilities["fetch"]>[1]>;

/** `send`: the way out of the network, replaced by tests. */
export function guardedFetch(
  env: Env,
  send = (url: URL, init: RequestInit) => fetch(url, init),
): Capabilities["fetch"] {
  return async (url, init = {}) => {
    let [at, sent] = [allowed(env, url), init];
    for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
      const response = await send(at, { ...sent, redirect: "manual" });
      const to = response.headers.get("location");
      if (!REDIRECTS.includes(response.status) || to === null) {
        return { status: response.status, text: () => response.text() };
      }
      await response.body?.cancel();
      const next = allowed(env, new URL(to, at).href);
      sent = redirected(sent, response.status, next.origin === at.origin);
      at = next;
    }
    throw new EnvError(`${url} leads on more than ${MOST_REDIRECTS} times`);
  };
}

function allowed(env: Env, address: string): URL {
  if (!URL.canParse(address)) throw new EnvError(`fetch: ${address} is no URL`);
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol)) throw new EnvError(`fetch: ${url.protocol} is not offered`);
  const refused = refuseAddress(env, address, "url");
  if (refused?.ok === false) throw new EnvError(`fetch: ${refused.error.message}`);
  return url;
}

/** As the fetch standard has it: what was posted is asked for again as a GET, but after 307 and 308. */
function redirected(init: Init, status: number, sameServer: boolean): Init {
  const headers = Object.entries(init.headers ?? {}).filter(
    ([name]) => sameServer || !CREDENTIALS.test(name),
  );
  const kept = { headers: Object.fromEntries(headers) };
  if (status === 307 || status === 308) return { ...init, ...kept };
  return { ...kept, method: init.method === "HEAD" ? "HEAD" : "GET" };
}
