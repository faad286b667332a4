/**
 * The variables of a deployment that bound memory. A wrangler.toml of another release may lack them, and a value may not
 * be a number: then the values of a deployment are used, which are safe on Cloudflare.
 */
import { LIMITS } from "../../contract/limits.ts";

/** Whatever the type of a binding says. */
export interface MemoryEnv {
  readonly MEMORY_BUDGET_MIB?: unknown;
  readonly ROLLOUT_CHARACTERS?: unknown;
}

const MIB = 1024 * 1024;
const ROLLOUT_CHARACTERS = 4 * MIB;

/** In bytes. */
export function memoryBudgetOf({ MEMORY_BUDGET_MIB: budget }: MemoryEnv): number {
  const mib = Number(budget);
  return (Number.isFinite(mib) ? Math.max(mib, LIMITS.memoryBudgetMib) : LIMITS.memoryBudgetMib) * MIB;
}

/** The largest turns of a rollout, as JSON in UTF-16 units. */
export function rolloutCharactersOf({ ROLLOUT_CHARACTERS: characters }: MemoryEnv): number {
  const most = Math.floor(Number(characters));
  return most > 0 ? Math.min(most, LIMITS.rolloutCharacters) : ROLLOUT_CHARACTERS;
}
