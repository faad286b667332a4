/**
 * What a training run takes over from its trainer's object: acknowledged steps, published and applied versions, a dead
 * batch, a reset. Snapshots come in any order and more than once; only a later one says anything.
 *
 * Invariants. Steps are acknowledged in order. A batch that is dead pauses the run once, with the reason; what the trainer
 * has leased it may finish. Versions are told of when they change.
 */
import type { RunPaused } from "../../../contract/run-events.ts";
import type { StepMetrics } from "../../../contract/training-view.ts";
import type { TrainerSnapshot } from "../../contract/training-wire.ts";
import type { RunSpec } from "../../contract/wire.ts";
import { statusOf } from "../control.ts";
import { appendEvent, settle } from "../standing.ts";
import type { RunStore } from "../store.ts";
import type { KnownTrainer } from "../training-state.ts";
import { resetTo } from "./reset.ts";
import { type Ending, voidStale, voidUnused } from "./stale.ts";

/** What the trainer measured stands under this in the series. */
const TRAINER = "trainer/";
const NOT_FINITE = "ack/not_finite";

/** Takes it over. Units that now wait for nothing but their scores come back. */
export function takeNews(store: RunStore, spec: RunSpec, snapshot: TrainerSnapshot, ending: Ending): number[] {
  return store.transaction(() => {
    const before = store.head().training?.trainer;
    if (before === undefined || snapshot.seq <= before.seq) return [];
    const reset = snapshot.generation > before.generation;
    // A run that has ended keeps what it came to.
    if (reset && store.head().settled_at !== null) return [];
    const units = reset ? resetTo(store, spec, snapshot, ending) : [];
    const acked = reset ? Math.min(before.acked_step, snapshot.reset_to) : before.acked_step;
    takeAcks(store, snapshot, acked, ending.now);
    const { acks: _taken, ...trainer } = snapshot;
    setTrainer(store, trainer);
    tellVersions(store, before, trainer);
    takeDead(store, before, trainer);
    units.push(...voidUnused(store, spec, ending), ...voidStale(store, spec, ending));
    settle(store, spec, ending.now);
    return units;
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
    store.training.setBatch(batch, { state: "acked" });
    store.training.noteStep(step, ack?.at ?? now, measuredBy(ack));
    const produced_version = ack?.produced_version ?? step;
    const not_finite = ack?.not_finite === undefined ? {} : { not_finite: [...ack.not_finite] };
    appendEvent(store, "batch.acked", { step, batch_id, produced_version, ...not_finite });
  }
  noteLate(store, acks.find(({ step }) => step === Math.min(known, acked_step)) ?? null);
  // A trainer that came back with older weights gets the batches after them once more.
  for (const batch of store.training.batchesBetween(acked_step, known)) {
    store.training.setBatch(batch, { state: "ready" });
  }
}

/** What was measured of a batch that counted as trained before its trainer said so: its weights came first. */
function noteLate(store: RunStore, ack: TrainerSnapshot["acks"][number] | null): void {
  if (ack === null || Object.keys(ack.metrics).length === 0) return;
  const { step, at } = ack;
  if (!store.training.isMeasured(step)) store.training.noteStep(step, at, measuredBy(ack));
}

/** What stands in the series of it; how many of the metrics were no finite number, where any was. */
function measuredBy(ack: TrainerSnapshot["acks"][number] | undefined): StepMetrics["values"] {
  const { metrics = {}, not_finite = [] } = ack ?? {};
  const odd = not_finite.length === 0 ? {} : { [NOT_FINITE]: not_finite.length };
  return { ...named(TRAINER, metrics), ...odd };
}

function named<T>(prefix: string, values: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}${name}`, value]));
}

function tellVersions(store: RunStore, before: KnownTrainer, after: KnownTrainer): void {
  if (after.published !== before.published) {
    appendEvent(store, "weights.published", { version: after.published });
  }
  const { min, max, by_replica } = after.applied;
  if (min !== before.applied.min || max !== before.applied.max) {
    appendEvent(store, "weights.applied", { version: min, by_replica });
  }
}

function takeDead(store: RunStore, before: KnownTrainer, { dead, generation }: KnownTrainer): void {
  if (dead === null || isSame(dead, before.dead)) {
    const revived = dead === null && before.dead !== null ? before.dead : null;
    const batch = revived && store.training.batch(revived.step, generation);
    if (batch?.state === "dead") store.training.setBatch(batch, { state: "ready" });
    return;
  }
  const { step, batch_id, reason } = dead;
  const batch = store.training.batch(step, generation);
  if (batch !== null) store.training.setBatch(batch, { state: "dead" });
  appendEvent(store, "batch.dead", { step, batch_id, reason });
  const head = store.head();
  if (head.stop !== null || head.settled_at !== null || head.paused) return;
  store.saveHead({ ...head, paused: true, row_current: false });
  const told: RunPaused = { status: statusOf(store.head()), reason: "dead_batch" };
  appendEvent(store, "run.paused", told);
}

function isSame(one: KnownTrainer["dead"], other: KnownTrainer["dead"]): boolean {
  return one?.batch_id === other?.batch_id;
}
