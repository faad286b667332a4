/**
 * Decides which groups a training run opens, and when. A group gets one task and one policy version when it opens, and
 * keeps both, however late its members start.
 *
 * Invariants. No group is opened for a batch that `lead` does not allow yet, beyond what can be trained on before it is
 * too old, or beyond what the remaining steps need. None of this delays members of open groups.
 */

import type { BatchSize } from "../../../contract/training-request.ts";
import { type TaskChoice, TaskPicker } from "../../../core/training/curriculum.ts";
import {
  largestGroup,
  memberOfRow,
  memberOrder,
  nextMember,
  rowOfMember,
  type SharedMember,
  sharedMembers,
} from "../../../core/training/members.ts";
import { batchRollouts, capacityOf, isFresh, withinLead } from "../../../core/training/numbering.ts";
import type { TrainingSpec } from "../../messages/training-wire.ts";
import type { RunSpec } from "../../messages/wire.ts";
import type { Openings } from "../dispatcher.ts";
import type { RunHead } from "../schema.ts";
import { trainsOn } from "../standing.ts";
import type { RunStore } from "../store.ts";
import { type Buffered, newShared, type TrainingState } from "../training-state.ts";

/** Rollouts per step; an estimate if batches are measured in tokens. */
export function stepRollouts(spec: RunSpec, asked: TrainingSpec, { seen }: TrainingState): number {
  return batchRollouts(asked.batch_size, seen, spec.rollouts_per_example);
}

/** True once every batch is cut: what is still in flight will not be trained on. */
export function allCut({ max_steps }: TrainingSpec, { step }: TrainingState): boolean {
  return step > max_steps;
}

/** True while the trainer is behind by more than `lead`: no group is opened and no batch is cut. */
export function isBehind({ lead }: TrainingSpec, { step, trainer }: TrainingState): boolean {
  return !withinLead({ step, published: trainer.published }, lead);
}

/** True if the buffer holds a full batch. */
export function isFull(size: BatchSize, { rollouts, tokens }: Buffered): boolean {
  return "rollouts" in size ? rollouts >= size.rollouts : tokens >= size.tokens;
}

/**
 * Rollouts of groups that may be opened now, in multiples of the group size; 0 in a run that trains nothing. If groups
 * differ in size, it is the most that the groups opened now can have.
 */
export function openable(spec: RunSpec, { training }: RunHead): number {
  const asked = spec.training;
  if (asked === undefined || training === null) return 0;
  const wanted = wantedRollouts(spec, asked, training);
  if (training.shared !== undefined) return wanted <= 0 ? 0 : wanted + largestGroup(spec) - 1;
  return Math.ceil(wanted / spec.rollouts_per_example) * spec.rollouts_per_example;
}

/** How many more rollouts can be trained on, or 1 if there are too few for a batch. */
function wantedRollouts(spec: RunSpec, asked: TrainingSpec, training: TrainingState): number {
  const { applied, published } = training.trainer;
  // After a reset an engine may serve discarded weights until the trainer has loaded others.
  const servesGone = applied.max > published;
  if (allCut(asked, training) || isBehind(asked, training) || servesGone) return 0;
  const capacity = capacityOf({
    step: training.step,
    max_steps: asked.max_steps,
    version: training.trainer.serving,
    published,
    lead: asked.lead,
    max_off_policy_steps: asked.max_off_policy_steps,
    batch_rollouts: stepRollouts(spec, asked, training),
    buffered: bufferedRollouts(asked, training),
    running: training.shared?.slots_open ?? training.groups_open * spec.rollouts_per_example,
    // The dispatcher limits how many run at once.
    max_concurrent: Number.POSITIVE_INFINITY,
  });
  return Math.max(isStarved(asked, training) ? 1 : 0, capacity);
}

/** The fill of the buffer in rollouts. For batches in tokens it is estimated; groups not trained on add nothing. */
function bufferedRollouts({ batch_size }: TrainingSpec, { buffered, seen }: TrainingState): number {
  if ("rollouts" in batch_size) return buffered.rollouts;
  return seen.tokens === 0 ? 0 : Math.ceil((buffered.tokens * seen.rollouts) / seen.tokens);
}

/** True if nothing is in flight and the batch is not full: the rollouts had fewer tokens than estimated. */
function isStarved(asked: TrainingSpec, { groups_open, buffered, step, trainer }: TrainingState) {
  const fresh = isFresh(trainer.serving, step, asked.max_off_policy_steps);
  return groups_open === 0 && fresh && !isFull(asked.batch_size, buffered);
}

/** Opens as many groups as `members` more rollouts need. Must be called inside a transaction. */
export function openGroups(store: RunStore, spec: RunSpec, tasks: TaskOrder, members: number): void {
  const head = store.head();
  const { training } = head;
  if (training === null || members <= 0) return;
  const shared = sharedMembers(spec.training);
  if (shared !== null) {
    openShared(store, spec, { members: shared, tasks, wanted: members });
    return;
  }
  const count = Math.ceil(members / spec.rollouts_per_example);
  for (let opened = 0; opened < count; opened += 1) {
    const group_index = training.groups_opened + opened;
    store.training.openGroup({
      group_index,
      example_index: tasks.example(spec, group_index),
      dispatch_version: training.trainer.serving,
    });
  }
  const groups_opened = training.groups_opened + count;
  const groups_open = training.groups_open + count;
  store.saveHead({ ...head, training: { ...training, groups_opened, groups_open } });
}

interface SharedOpening {
  readonly members: readonly SharedMember[];
  readonly tasks: TaskOrder;
  /** How many more rollouts are needed. */
  readonly wanted: number;
}

/** Opens groups in the order of the members' ratios, as many as are needed and can be trained on. */
function openShared(store: RunStore, spec: RunSpec, { members, tasks, wanted }: SharedOpening): void {
  const head = store.head();
  const { training: asked } = spec;
  if (asked === undefined || head.training === null) return;
  const order = memberOrder(members.length, spec.seed);
  const ratios = members.map(({ share }) => share.ratio);
  let training = head.training;
  for (let added = 0; added < wanted && wantedRollouts(spec, asked, training) > 0; ) {
    const { slots, slots_open, opened } = training.shared ?? newShared(members.length);
    const at = nextMember(ratios, opened, order);
    const member = members[at];
    if (member === undefined) break;
    const { name, group_size: size } = member;
    const nth = opened[at] ?? 0;
    store.training.openGroup({
      group_index: training.groups_opened,
      example_index: tasks.exampleOf(spec, members, { member, nth }),
      dispatch_version: training.trainer.serving,
      ...{ member: name, size, slots_before: slots },
    });
    added += size;
    training = {
      ...training,
      groups_opened: training.groups_opened + 1,
      groups_open: training.groups_open + 1,
      shared: { slots: slots + size, slots_open: slots_open + size, opened: opened.with(at, nth + 1) },
    };
  }
  store.saveHead({ ...head, training });
}

/** Opens groups beyond the planned ones, in a training run only. */
export class GroupOpenings implements Openings {
  readonly #store: RunStore;
  readonly #tasks: TaskOrder;

  constructor(store: RunStore) {
    this.#store = store;
    this.#tasks = new TaskOrder(store);
  }

  openable(spec: RunSpec): number {
    return openable(spec, this.#store.head());
  }

  open(spec: RunSpec, rollouts: number): void {
    openGroups(this.#store, spec, this.#tasks, rollouts);
  }

  goOn(spec: RunSpec): boolean {
    const head = this.#store.head();
    const { training: asked } = spec;
    if (asked === undefined || head.training === null || !trainsOn(spec, head)) return false;
    return !allCut(asked, head.training) && !isBehind(asked, head.training);
  }
}

/** Chooses the task of each group. After a restart its state is rebuilt from the groups' rows. */
export class TaskOrder {
  readonly #store: RunStore;
  /** By member; of a run whose groups are opened in the order of its rows, under "". */
  readonly #pickers = new Map<string, TaskPicker>();
  #noted = 0;

  constructor(store: RunStore) {
    this.#store = store;
  }

  example(spec: RunSpec, group: number): number {
    const { seed, dataset } = spec;
    const picker = this.#picker(spec, { name: "", rows: dataset.length, seed });
    this.#note(spec, (example_index, mean) => picker.note(example_index, mean));
    return picker.example(group);
  }

  /** The task of the next group of `member`, which has a curriculum of its own. `nth`: its number among them, from 0. */
  exampleOf(
    spec: RunSpec,
    members: readonly SharedMember[],
    { member, nth }: { readonly member: SharedMember; readonly nth: number },
  ): number {
    const pickerOf = ({ name, share: { rows } }: SharedMember) => {
      return this.#picker(spec, { name, rows: rows.length, seed: `${spec.seed} ${name}` });
    };
    this.#note(spec, (example_index, mean) => {
      const found = memberOfRow(members, example_index);
      if (found !== null) pickerOf(found.member).note(found.index, mean);
    });
    return rowOfMember(member.share.rows, pickerOf(member).example(nth));
  }

  #picker(spec: RunSpec, of: { readonly name: string } & Pick<TaskChoice, "rows" | "seed">): TaskPicker {
    const known = this.#pickers.get(of.name);
    if (known !== undefined) return known;
    const { name, ...choice } = of;
    const made = new TaskPicker({ curriculum: curriculumOf(spec), ...choice });
    this.#pickers.set(name, made);
    return made;
  }

  /** The order "cycle" does not depend on results. */
  #note(spec: RunSpec, take: (example_index: number, mean: number) => void): void {
    if (curriculumOf(spec).name === "cycle") return;
    for (const { position, example_index, mean } of this.#store.training.meansAfter(this.#noted)) {
      take(example_index, mean);
      this.#noted = position;
    }
  }
}

function curriculumOf({ training }: RunSpec): TaskChoice["curriculum"] {
  return training?.curriculum ?? { name: "cycle" };
}
