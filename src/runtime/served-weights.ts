/**
 * What engines served and when, as the trainer's reports tell it: by it a turn whose engine names no weights is told the
 * version that sampled it, or that nobody knows. Pure.
 *
 * Invariants. Where a report leaves open what a call met, both versions are possible: `min` and `max` differ. From a
 * `pending` on a replica may serve either; after a reset each may serve what is gone until it says otherwise.
 */
import { newestPossible, type ServedWeights } from "../core/training/numbering.ts";
import { appliedOf, type TrainerState } from "./trainer-state.ts";
import type { Report } from "./weight-ledger.ts";

/** Of a run whose trainer has said nothing yet: all is sampled by version 0. */
export const FIRST_SERVED: ServedWeights = {
  at: 0,
  min: 0,
  max: 0,
  newest: newestPossible({ published: 0, acked_step: 0 }),
};

/** From a report on that was taken. `state`: after it. */
export function servedSince(
  last: ServedWeights,
  state: TrainerState,
  { state: said, version }: Report,
  at: number,
): ServedWeights {
  const now = { ...last, at, newest: newestPossible(state) };
  const reports = hasReplicas(state);
  if (said === "applied" || (said === "published" && !reports)) return { ...now, ...bounds(state) };
  return said === "pending" ? { ...now, max: Math.max(last.max, version) } : now;
}

/** From any other change on: an acknowledgement, a registration, or what an earlier release stored. */
export function servedAfter(
  last: ServedWeights,
  before: TrainerState,
  state: TrainerState,
  at: number,
): ServedWeights {
  const now = { ...last, at, newest: newestPossible(state) };
  if (state.generation === before.generation) return now;
  if (!hasReplicas(state)) return { ...now, ...bounds(state) };
  return { ...now, min: Math.min(bounds(state).min, state.published) };
}

/** As it stands, where nothing is known of before. */
export function servedNow(state: TrainerState, at: number): ServedWeights {
  return { at, ...bounds(state), newest: newestPossible(state) };
}

/** Where no replica ever reports, what is published counts as served. */
function bounds(state: TrainerState): Pick<ServedWeights, "min" | "max"> {
  const { published } = state;
  if (!hasReplicas(state)) return { min: published, max: published };
  const { min, max } = appliedOf(state);
  return { min, max };
}

function hasReplicas({ replicas }: TrainerState): boolean {
  return Object.keys(replicas).length > 0;
}

export function isSameWeights(one: ServedWeights, other: ServedWeights): boolean {
  return one.min === other.min && one.max === other.max && one.newest === other.newest;
}
