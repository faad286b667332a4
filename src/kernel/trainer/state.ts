/**
 * The state of a trainer's object, and what is derived from it. Pure; times are epoch milliseconds.
 *
 * Invariants. Batches are handed out in the order of their steps, one at a time: the next one is `acked_step` + 1, and
 * a lease is always on it. `batches` has those of this generation that may still be handed out. They are not
 * acknowledged, or were acknowledged by a trainer that has not published later weights, so that it may come back
 * without them. `seq` grows with every change that must be reported to the run's object.
 */
import type { Acked, Registered } from "../../contract/trainer-wire.ts";
import { leftOut, NO_TIME, type StepTime, sharesOf, type TrainerTime } from "../messages/trainer-time.ts";
import type { ReadyBatch, TrainerSnapshot, TrainerSpec } from "../messages/training-wire.ts";

export interface AckRecord {
  readonly at: number;
  readonly metrics: Readonly<Record<string, number | null>>;
  /** The answer, for a repeated call. */
  readonly reply: Acked;
  /** The lease it was trained under: its holder may repeat the call. Absent if it is unknown. */
  readonly lease?: number;
  /** Null: nothing was measured. */
  readonly time: StepTime | null;
}

export interface DeliveredBatch extends ReadyBatch {
  readonly state: "ready" | "leased" | "acked" | "dead" | "void";
  /** Leases that ended without an acknowledgement, plus the current one. */
  readonly attempts: number;
  readonly ack: AckRecord | null;
  /** How its last lease ended, if not by an acknowledgement. */
  readonly fault: { readonly lease: number; readonly reason: string } | null;
}

export interface Lease {
  /** Number of the lease in the run, from 1: its id is made from it. */
  readonly serial: number;
  readonly step: number;
  readonly attempt: number;
  readonly ttl_ms: number;
  readonly expires_at: number;
  readonly by: "pull" | "push";
  /** For an offer: its answer has arrived, so the acknowledgement will be a separate call. */
  readonly answered?: true;
}

/** A batch that was offered by push, or is about to be. It becomes a lease when the trainer takes it. */
export type Offer = Omit<Lease, "expires_at" | "by" | "answered">;

export interface Trainer {
  readonly id: string;
  readonly kind: string;
  readonly last_seen_at: number;
}

/** What the fleet of a run has acknowledged. */
export interface FleetNotified {
  readonly told: { readonly generation: number; readonly version: number } | null;
  readonly released: boolean;
}

export interface TrainerState {
  readonly seq: number;
  /** Number of registrations. 0: none yet. */
  readonly epoch: number;
  readonly generation: number;
  readonly reset_to: number;
  readonly published: number;
  readonly acked_step: number;
  readonly trainer: Trainer | null;
  readonly batches: readonly DeliveredBatch[];
  readonly lease: Lease | null;
  readonly offer: Offer | null;
  /** Number of leases and offers so far. */
  readonly serials: number;
  readonly push: {
    /** Offers in a row that did not reach the trainer. */
    readonly misses: number;
    readonly next_at: number;
    /** The trainer refused further offers until it registers again. */
    readonly stopped: boolean;
  };
  /** The version that each engine serves. */
  readonly replicas: Readonly<Record<string, number>>;
  /** Engines that have not reported what they serve since weights were taken back; absent: none. */
  readonly unheard?: readonly string[];
  /** For a run on a fleet: what the fleet has acknowledged. */
  readonly fleet?: FleetNotified;
  readonly paused: boolean;
  readonly ended: boolean;
  /** The last acknowledged step that the run's object is known to have. */
  readonly known_acked: number;
  readonly time: TrainerTime;
}

export const NEW_TRAINER: TrainerState = {
  seq: 0,
  epoch: 0,
  generation: 0,
  reset_to: 0,
  published: 0,
  acked_step: 0,
  trainer: null,
  batches: [],
  lease: null,
  offer: null,
  serials: 0,
  push: { misses: 0, next_at: 0, stopped: false },
  replicas: {},
  paused: false,
  ended: false,
  known_acked: 0,
  time: NO_TIME,
};

export type DeliveryTerms = Pick<TrainerSpec, "target" | "max_steps">;

/** All steps are trained, or the run has ended. */
export function isOver(state: TrainerState, { max_steps }: DeliveryTerms): boolean {
  return state.ended || state.acked_step >= max_steps;
}

/** The batch to be trained now, whatever its state. */
export function nextBatch(state: TrainerState): DeliveredBatch | null {
  return batchAt(state, state.acked_step + 1);
}

export function batchAt(state: TrainerState, step: number): DeliveredBatch | null {
  return state.batches.find((batch) => batch.step === step) ?? null;
}

export function withBatch(state: TrainerState, changed: DeliveredBatch): TrainerState {
  const batches = state.batches.map((batch) => (batch.step === changed.step ? changed : batch));
  return { ...state, batches };
}

/** Marks a change that must be reported to the run's object. */
export function noteNews(state: TrainerState): TrainerState {
  return { ...state, seq: state.seq + 1 };
}

/** A trainer that leases and has made no call for this long counts as absent, not as waiting. */
const ABSENT_MS = 90_000;

export function noteSeen(state: TrainerState, now: number): TrainerState {
  const { trainer, lease, time } = state;
  if (trainer === null) return state;
  const gone = now - trainer.last_seen_at > ABSENT_MS;
  const absent = lease === null && time.asks && gone;
  const counted = absent ? leftOut(time, trainer.last_seen_at, now) : time;
  return { ...state, time: counted, trainer: { ...trainer, last_seen_at: now } };
}

export function registeredReply(state: TrainerState, { target, max_steps }: DeliveryTerms): Registered {
  const { epoch, published } = state;
  const next_step = state.acked_step + 1;
  return { epoch, next_step, published, delivery: target.delivery, max_steps };
}

export function appliedOf({ replicas }: TrainerState): TrainerSnapshot["applied"] {
  const versions = Object.values(replicas);
  const [min, max] = versions.length === 0 ? [0, 0] : [Math.min(...versions), Math.max(...versions)];
  return { min, max, by_replica: replicas };
}

/** `acks`: those that the run's object does not have. */
export function snapshotOf(state: TrainerState, acks: TrainerSnapshot["acks"]): TrainerSnapshot {
  const { seq, epoch, generation, reset_to, published, acked_step, trainer, lease } = state;
  const applied = appliedOf(state);
  const reports = Object.keys(state.replicas).length > 0;
  const dead = state.batches.find((batch) => batch.state === "dead");
  return {
    ...{ seq, epoch, generation, reset_to, published, acked_step, acks, applied, trainer },
    serving: reports ? Math.min(applied.min, published) : published,
    leased_step: lease?.step ?? null,
    dead: dead === undefined ? null : { step: dead.step, batch_id: dead.batch_id, reason: dead.fault?.reason ?? "" },
    time: sharesOf(state.time),
  };
}
