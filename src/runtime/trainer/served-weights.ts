/**
 * What engines served and when, as the trainer's reports tell it: by it a turn whose engine names no weights is told a
 * version. Pure.
 *
 * Invariants. Where a call may have met either of two versions it is told the older one: it is never taken for newer than
 * it is. After a reset an engine may serve what was taken back until it says otherwise.
 */
import { newestPossible, type ServedWeights } from "../../core/training/numbering.ts";
import { appliedOf, NEW_TRAINER, type TrainerState } from "./state.ts";

/** As it stands, from `at` on. Where no replica ever reports, what is published counts as served. */
export function servedNow(state: TrainerState, at: number): ServedWeights {
  const { published, replicas, unheard = [] } = state;
  const reports = Object.keys(replicas).length > 0;
  return {
    at,
    version: reports ? appliedOf(state).min : published,
    newest: newestPossible(state),
    taken_back: unheard.length > 0 ? 1 : 0,
  };
}

/** Of a run whose trainer has said nothing yet: all is sampled by version 0. */
export const FIRST_SERVED: ServedWeights = servedNow(NEW_TRAINER, 0);

export function isSameWeights(one: ServedWeights, other: ServedWeights): boolean {
  return one.version === other.version && one.newest === other.newest && one.taken_back === other.taken_back;
}
