/**
 * A training run goes back to an earlier version of its weights: the batches after it are void, and so is what was
 * sampled by weights that are gone. What is older, and still fresh enough, trains again, in the order it had.
 */
import { isFresh } from "../../../core/training/numbering.ts";
import type { TrainerSnapshot } from "../../contract/training-wire.ts";
import type { RunSpec } from "../../contract/wire.ts";
import type { RunStore } from "../store.ts";
import { type TrainGroup, withDropped } from "../training-state.ts";
import { dropBuffered } from "./batches.ts";
import { withGroup } from "./groups.ts";
import { type Ending, voidGroup } from "./stale.ts";

/** Inside the transaction that takes the news over. Units that wait for nothing but their scores come back. */
export function resetTo(
  store: RunStore,
  spec: RunSpec,
  { reset_to: version }: TrainerSnapshot,
  ending: Ending,
): number[] {
  voidBatches(store, version);
  for (const group of store.training.buffered()) {
    const newest = Math.max(group.dispatch_version, group.max_version ?? 0);
    if (newest > version) dropBuffered(store, group, "version_reset");
  }
  for (const group of store.training.shippedAfter(version)) takeBack(store, spec, group, version);
  const units = store.training
    .openOutside(0, version)
    .flatMap((group) => voidGroup(store, spec, group, "version_reset", ending));
  store.training.voidAbove(version);
  store.training.forgetStepsAfter(version);
  const head = store.head();
  if (head.training !== null) {
    const evaluated = Math.min(head.training.evaluated, version);
    const training = { ...head.training, step: version + 1, evaluated, empty: 0 };
    store.saveHead({ ...head, training });
  }
  return units;
}

function voidBatches(store: RunStore, version: number): void {
  const batches = store.training.batchesBetween(version, Number.MAX_SAFE_INTEGER);
  for (const batch of batches) store.training.setBatch(batch, { state: "void" });
  const head = store.head();
  if (head.training === null) return;
  const { shipped, voided } = head.training.batches;
  const counted = { shipped: shipped - batches.length, voided: voided + batches.length };
  store.saveHead({ ...head, training: { ...head.training, batches: counted } });
}

/** Back to the front of the buffer: its number is lower than those of all that wait there. */
function takeBack(store: RunStore, spec: RunSpec, group: TrainGroup, version: number): void {
  const head = store.head();
  const { training } = head;
  if (training === null) return;
  const newest = Math.max(group.dispatch_version, group.max_version ?? 0);
  const most = spec.training?.max_off_policy_steps ?? 0;
  const keeps = newest <= version && isFresh(group.dispatch_version, version + 1, most);
  const { group_index } = group;
  const shipped = training.shipped - 1;
  if (keeps) {
    store.training.setGroup(group_index, { state: "buffered", step: null });
    const buffered = withGroup(training.buffered, group, 1);
    store.saveHead({ ...head, training: { ...training, shipped, buffered } });
    return;
  }
  const gone = { state: "dropped", reason: "version_reset", step: null } as const;
  store.training.setGroup(group_index, { ...gone, made: null, credits: null });
  const counted = withDropped({ ...training, shipped }, "version_reset", group.rollouts);
  store.saveHead({ ...head, training: counted });
}
