/**
 * The door to the outside world. A capability that was not declared in `needs`, or that this platform does not offer,
 * is an error the moment it is touched: an environment cannot come to depend on what its manifest hides.
 */
import { EnvError } from "../errors.ts";
import type { Capabilities, Need } from "./contract.ts";

/** Randomness and the clock are always there. */
export type OfferedCapabilities = Partial<Capabilities> & Pick<Capabilities, "random" | "now">;

export function gateCapabilities(
  needs: readonly Need[],
  offered: OfferedCapabilities,
): Capabilities {
  return {
    get sql() {
      return granted("sql", needs, offered.sql);
    },
    get fetch() {
      return granted("fetch", needs, offered.fetch);
    },
    secret: (name) => granted(`secret:${name}`, needs, offered.secret)(name),
    random: offered.random,
    now: offered.now,
  };
}

function granted<T>(need: Need, needs: readonly Need[], offer: T | undefined): T {
  if (!needs.includes(need)) {
    throw new EnvError(`${need} is used but not declared: add "${need}" to needs`);
  }
  if (offer === undefined) {
    const how = need === "sql" ? ": give runRollout openSqlite" : "";
    throw new EnvError(`${need} is declared but not offered here${how}`);
  }
  return offer;
}
