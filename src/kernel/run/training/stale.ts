/**
 * Voids groups that end before they are complete: their running members are notified to stop, and finished members are
 * not trained on.
 *
 * Invariants. A group is voided as a whole. Members that never started end in the same transaction, so the group
 * becomes complete like any other.
 */
import type { CancelReason } from "../../../contract/errors.ts";
import { minFreshVersion } from "../../../core/training/numbering.ts";
import type { RolloutSlot, RunSpec } from "../../messages/wire.ts";
import { dispatch, giveUp } from "../accounting.ts";
import { groupSizeIn, pendingOf, trainsOn } from "../standing.ts";
import type { RunStore } from "../store.ts";
import { type TrainGroup, withDropped, withoutOpen } from "../training-state.ts";

const VOID = "its group trains nothing any more";

/** What is needed to end rollouts that never started. */
export interface Ending {
  readonly idOf: (place: RolloutSlot) => string;
  readonly now: number;
}

/** Voids open groups that are too old for the current step. Returns scoring groups that now wait only for scores. */
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

/** Voids all open groups once the last step is trained: they are not needed, and no reset can undo a step any more. */
export function voidUnused(store: RunStore, spec: RunSpec, ending: Ending): number[] {
  const head = store.head();
  // In a run that was stopped early, rollouts that never began stay pending.
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
  // After the last step no group is fresh enough, so that is the reason given to its rollouts.
  const cancelled: CancelReason = reason === "unused" ? "stale" : reason;
  store.training.setGroup(group_index, { state: "dropped", reason });
  const head = store.head();
  const { training } = head;
  if (training === null) return [];
  const groups_open = training.groups_open - 1;
  const size = groupSizeIn(store, spec, group_index);
  const counted = withDropped({ ...training, groups_open, ...withoutOpen(training, size) }, reason, size);
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
    const scoringGroup = row === null ? null : giveUp(store, spec, row, given, now);
    return scoringGroup === null ? [] : [scoringGroup];
  });
}
