/**
 * The interface to the outside world. Using a capability that `needs` does not declare, or that this platform does not
 * offer, throws at the first access: so an environment cannot depend on something that its manifest hides.
 */
import { EnvError } from "../../contract/errors.ts";
import type { Capabilities, FetchOptions, Need, ScoringCapabilities } from "./contract.ts";

/** Randomness and the clock are always available. */
export type OfferedCapabilities = Partial<Capabilities> & Pick<Capabilities, "random" | "now">;
export type OfferedForScoring = Partial<ScoringCapabilities> & Pick<ScoringCapabilities, "now">;

const ADDRESS = "fetch:";

export function gateCapabilities(needs: readonly Need[], offered: OfferedCapabilities): Capabilities {
  return {
    get sql() {
      return grant("sql", needs, offered.sql);
    },
    get fetch() {
      return fetchWithin(needs, offered.fetch);
    },
    secret: (name) => grant(`secret:${name}`, needs, offered.secret)(name),
    random: offered.random,
    now: offered.now,
  };
}

/** Gates the capabilities of scoring, which has neither a database nor randomness. */
export function gateForScoring(needs: readonly Need[], offered: OfferedForScoring): ScoringCapabilities {
  return {
    get fetch() {
      return fetchWithin(needs, offered.fetch);
    },
    secret: (name) => grant(`secret:${name}`, needs, offered.secret)(name),
    now: offered.now,
  };
}

/** The function that `can.secret` is. `values`: by name. */
export function secretFrom(values: Readonly<Record<string, string>>): Capabilities["secret"] {
  return (name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined) return value;
    throw new EnvError(`the secret ${name} can no longer be decrypted: set it again under /v1/secrets`);
  };
}

/** The addresses in `needs`. */
export function addressesNeeded(needs: readonly string[]): string[] {
  return needs.filter((need) => need.startsWith(ADDRESS)).map((need) => need.slice(ADDRESS.length));
}

/** Whether `needs` permit `can.fetch`, anywhere or to some addresses. */
export function fetches(needs: readonly string[]): boolean {
  return needs.includes("fetch") || addressesNeeded(needs).length > 0;
}

function fetchWithin(needs: readonly Need[], offer: Capabilities["fetch"] | undefined): Capabilities["fetch"] {
  const somewhere = needs.find((need) => need === "fetch" || need.startsWith(ADDRESS));
  const send = grant(somewhere ?? "fetch", needs, offer);
  return async (url, init) => {
    requireFetch(needs, url, init);
    return await send(url, init);
  };
}

/** Throws EnvError if `needs` do not declare this call. */
export function requireFetch(needs: readonly Need[], url: string, { sign }: Pick<FetchOptions, "sign"> = {}): void {
  if (!needs.includes("fetch")) mustDeclare(`${ADDRESS}${url}`, needs);
  if (sign !== undefined) mustDeclare(`secret:${sign.secret}`, needs);
}

function grant<T>(need: Need, needs: readonly Need[], offer: T | undefined): T {
  mustDeclare(need, needs);
  if (offer === undefined) throw new EnvError(`${need} is declared but not available here`);
  return offer;
}

/** Throws EnvError if `needs` do not have it. */
export function mustDeclare(need: Need, needs: readonly Need[]): void {
  if (needs.includes(need)) return;
  throw new EnvError(`${need} is used but not declared: add "${need}" to needs`);
}
