/**
 * How every call leaves: to models, judges and embedding models, to addresses of environments and scorers, to trainers,
 * and for probes. Replies are read by bounded-body.ts.
 *
 * Invariants. An address is checked right before the call leaves, whoever checked it before, and by its name only: the
 * name is not resolved. A redirect is returned and never followed. Every call has a signal that ends it.
 */
import { isAmong, isPublicHost } from "../../core/public-host.ts";

export interface Sent extends Omit<RequestInit, "signal"> {
  /** Aborted if the call's time is over, or if its result is no longer needed. */
  readonly signal: AbortSignal;
}

/** Sends one request. Throws AddressRefused, and errors of the connection. */
export type Send = (url: URL, init: Sent) => Promise<Response>;

/** The connection of one call: at most six calls of an invocation or an object have one. */
export interface Connection {
  /**
   * Sends a request of the call. The connection is free for other calls once the headers of an answer are here, while its
   * body is read. After a refusal the call keeps it: it may send its request again in another form. A request after an
   * answer waits for a connection, unless `signal` is aborted.
   */
  readonly request: (send: () => Promise<Response>, signal: AbortSignal) => Promise<Response>;
}

/** For calls that are made outside of an invocation, such as the probe of a tool: they are not limited. */
export const UNLIMITED: Connection = { request: (send) => send() };

/** The call was not sent: this deployment may not call its address. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/**
 * Why an address may not be called; null if it may. `privateToo`: the deployment's own network is allowed too, where
 * servers have no certificates. `hosts`: the hosts that the organisation allows; null: any.
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

/** A `Send` that checks addresses. `network`: a `fetch` of the runtime or of a binding. */
export function guarded(network: Send, privateToo: boolean, hosts: readonly string[] | null = null): Send {
  return async (url, init) => {
    const refused = refusedAddress(url, privateToo, hosts);
    if (refused !== null) throw new AddressRefused(refused);
    return await network(url, { ...init, redirect: "manual" });
  };
}

/** The `Send` of a process that is not the platform, such as a tool: its own network is allowed. */
export const ownNetwork: Send = guarded((url, init) => fetch(url, init), true);
