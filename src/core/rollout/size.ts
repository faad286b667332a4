/**
 * What a rollout's turns take in storage, counted as they come: UTF-16 units of their JSON. Whoever plays, stores, folds or
 * scores a rollout holds all of it at once, so it has a most (`LIMITS.rolloutCharacters`).
 */
import type { JsonObject } from "../../contract/json.ts";
import { packState, type Turn } from "../../contract/trajectory.ts";

export function sizeOf(value: object): number {
  return JSON.stringify(value).length;
}

/** Of the state after the last turn, as a trajectory keeps it. */
export function stateSize(
  { turns, initial_state }: { readonly turns: readonly Turn[]; readonly initial_state: JsonObject },
  state: JsonObject,
): number {
  const last = turns.at(-1);
  if (last === undefined) return 0;
  return sizeOf(packState(turns.at(-2)?.state_after ?? initial_state, state, last.index));
}
