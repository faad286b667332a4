/**
 * Groups that end before they are whole: what runs of them is told to stop, and whatever has answered trains nothing.
 *
 * Invariants. A group is void as a whole, with the members that never started: those end in the same transaction, so
 * that the group becomes whole like any other.
 */
import type { CancelReason } from "../../../contract/errors.ts";
import { minFreshVersion } from "../../../core/training/numbering.ts";
import type { RolloutSlot, RunSpec } from "../../messages/wire.ts";
import { dispatch, giveUp } from "../accounting.ts";
import { pendingOf, trainsOn } from "../standing.ts";
import type { RunStore } from "../store.ts";
import { type TrainGroup, withDropped } from "../training-state.ts";

const VOID = "its group trains nothing any more";

/** What ends rollouts that were never started. */
export interface Ending {
  readonly idOf: (place: RolloutSlot) => string;
  readonly now: number;
}

/** Voids open groups that the step at hand has left behind. Units that wait for nothing but their scores come back. */
export function voidStale(store: RunStore, spec: RunSpec, ending: Ending): number[] {
  const { training } = store.head();
  if (spec.training === undefined || training === null) return [];
  const oldest = minFreshVersion(training.step, spec.training.max_off_policy_steps);
  if (oldest <= 0) return [];
  return store.transaction(() =>
    store.training
      .openOutside(oldest, Number.MAX_SAFE_INTEGER)
      .flatMap((group) => voidGroup(store, spec, group, "stale", ending)),
  );
}

/** Voids all that is open once the last step is trained: nobody waits for it, and nothing takes a step back any more. */
export function voidUnused(store: RunStore, spec: RunSpec, ending: Ending): number[] {
  const head = store.head();
  // A run that was stopped keeps what it never began as pending.
  if (spec.training === undefined || trainsOn(spec, head) || head.stop !== null) return [];
  return store.transaction(() =>
    store.training
      .openOutside(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
      .flatMap((group) => voidGroup(store, spec, group, "unused", ending)),
  );
}

export function voidGroup(
  store: RunStore,
  spec: RunSpec,
  { group_index }: TrainGroup,
  reason: "stale" | "version_reset" | "unused",
  ending: Ending,
): number[] {
  // Past the last step nothing is fresh enough any more: of its rollouts that is the reason.
  const cancelled: CancelReason = reason === "unused" ? "stale" : reason;
  store.training.setGroup(group_index, { state: "dropped", reason });
  const head = store.head();
  const { training } = head;
  if (training === null) return [];
  const groups_open = training.groups_open - 1;
  const counted = withDropped({ ...training, groups_open }, reason, spec.rollouts_per_example);
  store.saveHead({ ...head, training: counted });
  store.cancelGroup(group_index, cancelled);
  // Only the group that was opened last can have members that never started.
  const last = group_index === training.groups_opened - 1;
  return last ? endUnstarted(store, spec, cancelled, ending) : [];
}

function endUnstarted(store: RunStore, spec: RunSpec, reason: CancelReason, { idOf, now }: Ending): number[] {
  const missing = pendingOf(spec, store.head());
  if (missing === 0) return [];
  const given = { from: "running", outcome: "cancelled", reason, message: VOID } as const;
  return dispatch(store, spec, missing, idOf, now).flatMap((place) => {
    const row = store.rollout(place);
    const unit = row === null ? null : giveUp(store, spec, row, given, now);
    return unit === null ? [] : [unit];
  });
}
