/**
 * Applies snapshots of the trainer's object to a training run: acknowledged steps, published and applied versions, a
 * dead batch, a reset. Snapshots may arrive in any order and more than once; only one with a higher `seq` has an
 * effect.
 *
 * Invariants. Steps are acknowledged in order. A dead batch pauses the run once, with the reason; the trainer may
 * finish the batch it has leased. An event is written when a version changes.
 */
import type { RunPaused } from "../../../contract/run-events.ts";
import type { StepMetrics } from "../../../contract/training-view.ts";
import { isFresh } from "../../../core/training/numbering.ts";
import type { TrainerSnapshot } from "../../messages/training-wire.ts";
import type { RunSpec } from "../../messages/wire.ts";
import { statusOf } from "../control.ts";
import { announce, settle } from "../standing.ts";
import type { RunStore } from "../store.ts";
import {
  type KnownTrainer,
  type TrainBatch,
  type TrainGroup,
  withDropped,
  withoutEvalsAfter,
} from "../training-state.ts";
import { dropBuffered } from "./batches.ts";
import { withGroup } from "./groups.ts";
import { type Ending, voidGroup, voidStale, voidUnused } from "./stale.ts";

/** Prefix of the trainer's measurements in the series. */
const TRAINER = "trainer/";
const NOT_FINITE = "ack/not_finite";

/** Applies the snapshot. Returns scoring groups that now wait only for their scores. */
export function takeNews(store: RunStore, spec: RunSpec, snapshot: TrainerSnapshot, ending: Ending): number[] {
  return store.transaction(() => {
    const before = store.head().training?.trainer;
    if (before === undefined || snapshot.seq <= before.seq) return [];
    const reset = snapshot.generation > before.generation;
    // A run that has ended keeps its result.
    if (reset && store.head().settled_at !== null) return [];
    const scoringGroups = reset ? resetTo(store, spec, snapshot, ending) : [];
    const acked = reset ? Math.min(before.acked_step, snapshot.reset_to) : before.acked_step;
    takeAcks(store, snapshot, acked, ending.now);
    const { acks: _taken, ...trainer } = snapshot;
    setTrainer(store, trainer);
    notifyOfVersions(store, before, trainer, ending.now);
    takeDead(store, before, trainer, ending.now);
    scoringGroups.push(...voidUnused(store, spec, ending), ...voidStale(store, spec, ending));
    settle(store, spec, ending.now);
    return scoringGroups;
  });
}

function setTrainer(store: RunStore, trainer: KnownTrainer): void {
  const head = store.head();
  if (head.training !== null) {
    store.saveHead({ ...head, training: { ...head.training, trainer } });
  }
}

function takeAcks(store: RunStore, { acked_step, acks }: TrainerSnapshot, known: number, now: number): void {
  for (const batch of store.training.batchesBetween(known, acked_step)) {
    const { step, batch_id } = batch;
    const ack = acks.find((one) => one.step === step);
    store.training.setBatch(batch, { state: "acked", ...notePush(store, batch, ack?.at ?? now) });
    store.training.noteStep(step, ack?.at ?? now, measuredBy(ack));
    const produced_version = ack?.produced_version ?? step;
    const not_finite = ack?.not_finite === undefined ? {} : { not_finite: [...ack.not_finite] };
    announce(store, "batch.acked", { step, batch_id, produced_version, ...not_finite }, now);
  }
  noteLate(store, acks.find(({ step }) => step === Math.min(known, acked_step)) ?? null);
  // A trainer that restarted with older weights gets the later batches once more.
  for (const batch of store.training.batchesBetween(acked_step, known)) {
    store.training.setBatch(batch, { state: "ready" });
  }
}

/** Numbers a batch that a trainer took, once, even if it is trained again. */
function notePush(store: RunStore, { push_seq }: TrainBatch, pushed_at: number): Partial<TrainBatch> {
  if (push_seq !== null) return {};
  const head = store.head();
  const pushed = head.books.pushed + 1;
  store.saveHead({ ...head, books: { ...head.books, pushed }, row_current: false });
  return { push_seq: pushed, pushed_at };
}

/** Adds measurements of a batch whose weights were reported before its ack, so that it already counted as trained. */
function noteLate(store: RunStore, ack: TrainerSnapshot["acks"][number] | null): void {
  if (ack === null || Object.keys(ack.metrics).length === 0) return;
  const { step, at } = ack;
  if (!store.training.isMeasured(step)) store.training.noteStep(step, at, measuredBy(ack));
}

/** The values for the series, with the number of metrics that were not finite numbers, if any. */
function measuredBy(ack: TrainerSnapshot["acks"][number] | undefined): StepMetrics["values"] {
  const { metrics = {}, not_finite = [] } = ack ?? {};
  const odd = not_finite.length === 0 ? {} : { [NOT_FINITE]: not_finite.length };
  return { ...prefixNames(TRAINER, metrics), ...odd };
}

function prefixNames<T>(prefix: string, values: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}${name}`, value]));
}

function notifyOfVersions(store: RunStore, before: KnownTrainer, after: KnownTrainer, now: number): void {
  if (after.published !== before.published) {
    announce(store, "weights.published", { version: after.published }, now);
  }
  const { min, max, by_replica } = after.applied;
  if (min !== before.applied.min || max !== before.applied.max) {
    announce(store, "weights.applied", { version: min, by_replica }, now);
  }
}

function takeDead(store: RunStore, before: KnownTrainer, { dead, generation }: KnownTrainer, now: number): void {
  if (dead === null || isSame(dead, before.dead)) {
    const revived = dead === null && before.dead !== null ? before.dead : null;
    const batch = revived && store.training.batch(revived.step, generation);
    if (batch?.state === "dead") store.training.setBatch(batch, { state: "ready" });
    return;
  }
  const { step, batch_id, reason } = dead;
  const batch = store.training.batch(step, generation);
  if (batch !== null) store.training.setBatch(batch, { state: "dead" });
  announce(store, "batch.dead", { step, batch_id, reason }, now);
  const head = store.head();
  if (head.stop !== null || head.settled_at !== null || head.paused) return;
  store.saveHead({ ...head, paused: true, row_current: false });
  const event: RunPaused = { status: statusOf(store.head()), reason: "dead_batch" };
  announce(store, "run.paused", event, now);
}

function isSame(one: KnownTrainer["dead"], other: KnownTrainer["dead"]): boolean {
  return one?.batch_id === other?.batch_id;
}

/**
 * Goes back to an earlier version of the weights: later batches are void, and so are samples of discarded weights.
 * Older groups that are still fresh are trained on again, in the same order. Runs inside the transaction that applies
 * the snapshot. Returns scoring groups that now wait only for their scores.
 */
function resetTo(store: RunStore, spec: RunSpec, { reset_to: version }: TrainerSnapshot, ending: Ending): number[] {
  voidBatches(store, version);
  for (const group of store.training.buffered()) {
    const newest = Math.max(group.dispatch_version, group.max_version ?? 0);
    if (newest > version) dropBuffered(store, group, "version_reset");
  }
  for (const group of store.training.shippedAfter(version)) takeBack(store, spec, group, version);
  const scoringGroups = store.training
    .openOutside(0, version)
    .flatMap((group) => voidGroup(store, spec, group, "version_reset", ending));
  store.training.voidAbove(version);
  store.training.forgetStepsAfter(version);
  const head = store.head();
  if (head.training !== null) {
    const evals = withoutEvalsAfter(head.training, version);
    const training = { ...head.training, step: version + 1, ...evals, empty: 0 };
    store.saveHead({ ...head, training });
  }
  return scoringGroups;
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

/** Returns a group to the front of the buffer: its `position` is lower than those of all groups there. */
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
