/**
 * How every call leaves: to models, judges and embedding models, to what environments and scorers name, to trainers, and
 * those of a probe. What comes back is read by bounded-body.ts.
 *
 * Invariants. An address is checked right before the call leaves, whoever checked it before, and by its name alone: no
 * resolver is asked. A redirect is handed back, and nobody follows it. Every call has a signal that ends it.
 */
import { isAmong, isPublicHost } from "../../core/public-host.ts";

export interface Sent extends Omit<RequestInit, "signal"> {
  /** Aborted when the call's time is over, or nobody waits for it any more. */
  readonly signal: AbortSignal;
}

/** Sends one request. Throws AddressRefused, and what the connection throws. */
export type Send = (url: URL, init: Sent) => Promise<Response>;

/** The call never left: this deployment may not be sent to its address. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/**
 * Why an address may not be called; null when it may. `privateToo`: the deployment's own network is meant as well, where
 * servers have no certificates. `hosts`: what whoever asks allows; null: any.
 */
export function refusedAddress(
  { protocol, hostname, username, password }: URL,
  privateToo: boolean,
  hosts: readonly string[] | null,
): string | null {
  if (protocol !== "http:" && protocol !== "https:") return `${protocol} is not supported`;
  if (username !== "" || password !== "") return "an address must not contain a user name or password: send a key";
  if (!privateToo && !isPublicHost(hostname)) {
    return (
      `${hostname} is not a public address, and the platform's own network is private; ` +
      "to allow private addresses, set ALLOW_PRIVATE_ENDPOINTS"
    );
  }
  if (!privateToo && protocol === "http:") return `${hostname} must be called over https: http is not encrypted`;
  if (hosts === null || isAmong(hosts, hostname)) return null;
  return `${hostname} is not one of the organisation's allowed hosts (allowed_hosts)`;
}

/** A network as calls may use it. `network`: a `fetch`, the runtime's or a binding's. */
export function guarded(network: Send, privateToo: boolean, hosts: readonly string[] | null = null): Send {
  return async (url, init) => {
    const refused = refusedAddress(url, privateToo, hosts);
    if (refused !== null) throw new AddressRefused(refused);
    return await network(url, { ...init, redirect: "manual" });
  };
}

/** The way out of a process that is nobody's platform, such as a tool: its own network is meant. */
export const ownNetwork: Send = guarded((url, init) => fetch(url, init), true);
