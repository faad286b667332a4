/**
 * Cuts batches from the buffer of a training run: complete groups, in the order of their completion. A batch is first a
 * row; then it is written to R2 and offered to the trainer (loop.ts).
 *
 * Invariants. No batch contains a group that is too old. At most `lead` + 1 batches are ahead of the published version.
 * Groups with nothing to train on are counted and left out. If all are left out there is no batch, and the step stays.
 */

import type { BatchSize } from "../../../contract/training-request.ts";
import { batchId } from "../../../core/training/batch.ts";
import { isFresh, offPolicyLag } from "../../../core/training/numbering.ts";
import { type GroupFacts, stepMetrics } from "../../../core/training/step-metrics.ts";
import type { TrainingSpec } from "../../messages/training-wire.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { RunHead } from "../schema.ts";
import type { RunStore } from "../store.ts";
import { type Buffered, type BufferedGroup, type Dropped, withDropped } from "../training-state.ts";
import { noteEmpty, withGroup } from "./groups.ts";
import { allCut, isBehind, isFull } from "./plan.ts";

export function canCut({ training: asked }: RunSpec, head: RunHead): boolean {
  const { training } = head;
  if (asked === undefined || training === null) return false;
  if (head.stop !== null || head.settled_at !== null || head.paused) return false;
  if (allCut(asked, training) || isBehind(asked, training)) return false;
  return isFull(asked.batch_size, training.buffered);
}

/** Cuts all batches that can be cut. Returns how many. */
export function cutBatches(store: RunStore, spec: RunSpec, now: number): number {
  let cut = 0;
  while (canCut(spec, store.head())) {
    if (store.transaction(() => cutOne(store, spec, now))) cut += 1;
  }
  return cut;
}

/** False: the groups had nothing to train on. */
function cutOne(store: RunStore, spec: RunSpec, now: number): boolean {
  const asked = spec.training;
  const { training } = store.head();
  if (asked === undefined || training === null) return false;
  const groups = firstOf(store.training.buffered(), asked.batch_size);
  const trained = groups.filter(({ samples }) => samples > 0);
  for (const group of groups) {
    if (group.samples > 0) shipGroup(store, group, training.step);
    else dropBuffered(store, group, "zero_variance");
  }
  if (trained.length === 0) {
    noteEmpty(store, groups.length);
    return false;
  }
  addBatch(store, spec, trained, now);
  noteStep(store, spec, { step: training.step, stale: training.stale, cut: groups.length, now });
  reconcileBuffer(store, asked);
  return true;
}

/** Drops groups that are too old for the batch being collected: they would take the place of usable ones. */
function reconcileBuffer(store: RunStore, asked: TrainingSpec): void {
  const step = store.head().training?.step ?? 1;
  const stale = store.training
    .buffered()
    .filter(({ dispatch_version }) => !isFresh(dispatch_version, step, asked.max_off_policy_steps));
  for (const group of stale) dropBuffered(store, group, "stale");
}

/** As many whole groups as fill a batch: the last one may exceed it. */
function firstOf(groups: readonly BufferedGroup[], size: BatchSize): BufferedGroup[] {
  const first: BufferedGroup[] = [];
  let sum: Buffered = { groups: 0, rollouts: 0, samples: 0, tokens: 0, bytes: 0 };
  for (const group of groups) {
    if (isFull(size, sum)) break;
    first.push(group);
    sum = withGroup(sum, group, 1);
  }
  return first;
}

function shipGroup(store: RunStore, group: BufferedGroup, step: number): void {
  store.training.setGroup(group.group_index, { state: "shipped", step });
  const head = store.head();
  const { training } = head;
  if (training === null) return;
  const sampled = { start: group.dispatch_version, end: group.max_version ?? 0 };
  store.saveHead({
    ...head,
    training: {
      ...training,
      shipped: training.shipped + 1,
      buffered: withGroup(training.buffered, group, -1),
      max_lag: Math.max(training.max_lag, offPolicyLag(step, sampled).total),
    },
  });
}

/** Removes the group from the buffer, with the reason. */
export function dropBuffered(store: RunStore, group: BufferedGroup, reason: Dropped): void {
  const { group_index } = group;
  store.training.setGroup(group_index, { state: "dropped", reason, made: null, credits: null });
  const head = store.head();
  const { training } = head;
  if (training === null) return;
  const buffered = withGroup(training.buffered, group, -1);
  const counted = withDropped({ ...training, buffered }, reason, group.rollouts);
  store.saveHead({ ...head, training: counted });
}

function addBatch(store: RunStore, { run_id }: RunSpec, groups: readonly BufferedGroup[], now: number): void {
  const head = store.head();
  const { training } = head;
  if (training === null) return;
  const { step, batches } = training;
  const { generation } = training.trainer;
  const sum = (of: (group: BufferedGroup) => number) => groups.reduce((total, group) => total + of(group), 0);
  store.training.addBatch({
    step,
    generation,
    batch_id: batchId(run_id, step, generation),
    max_version: Math.max(...groups.map(({ max_version }) => max_version ?? 0)),
    groups: groups.length,
    rollouts: sum(({ rollouts }) => rollouts),
    samples: sum(({ samples }) => samples),
    tokens: sum(({ tokens }) => tokens),
    cut_at: now,
  });
  const shipped = { ...batches, shipped: batches.shipped + 1 };
  store.saveHead({
    ...head,
    training: { ...training, step: step + 1, empty: 0, stale: 0, batches: shipped },
  });
}

interface Cut {
  readonly step: number;
  /** Rollouts dropped as too old since the previous batch, */
  readonly stale: number;
  /** and groups counted in the batch, including those with nothing to train on. */
  readonly cut: number;
  readonly now: number;
}

/** The groups and rollouts of a batch by member. */
function sharesIn(shipped: readonly GroupFacts[]): Record<string, number> {
  const byMember = Map.groupBy(shipped, ({ member }) => member);
  return Object.fromEntries(
    [...byMember].flatMap(([member, groups]) => {
      if (member === undefined) return [];
      const rollouts = groups.flatMap((group) => group.rollouts.filter(({ samples }) => samples > 0));
      return [
        [`batch/${member}/groups`, groups.length],
        [`batch/${member}/rollouts`, rollouts.length],
      ];
    }),
  );
}

function noteStep(store: RunStore, spec: RunSpec, { step, stale, cut, now }: Cut): void {
  const { generation = 0 } = store.head().training?.trainer ?? {};
  const batch = store.training.batch(step, generation);
  const before = store.training.batch(step - 1, generation)?.cut_at;
  if (batch === null) return;
  const read = (facts: readonly string[]) => facts.map((text) => JSON.parse(text) as GroupFacts);
  const arrived = read(store.training.arrivedFacts(step));
  const shipped = read(store.training.shippedFacts(step));
  const { groups, rollouts, samples, tokens } = batch;
  store.training.noteStep(step, now, {
    ...stepMetrics({ step, arrived, shipped, dropped_stale: stale }),
    "batch/groups": groups,
    "batch/rollouts": rollouts,
    "batch/samples": samples,
    "batch/tokens": tokens,
    "batch/trainable_share": groups / cut,
    ...(spec.training?.members !== undefined && sharesIn(shipped)),
    ...(before !== undefined && { "time/step": (now - before) / 1000 }),
  });
}
