/**
 * What a trainer's object keeps, and what is read off it. Pure; times are epoch milliseconds.
 *
 * Invariants. Batches are handed out in the order of their steps, one at a time: the next one is `acked_step` + 1, and a
 * lease is always on it. `batches` holds those of this generation that may still be handed out: not acknowledged, or
 * acknowledged by a trainer whose weights after them nobody has published, so that it may come back without them.
 * `seq` grows with everything the run's object must hear of.
 */
import type { Acked, Registered } from "../../contract/trainer-wire.ts";
import { leftOut, NO_TIME, type StepTime, sharesOf, type TrainerTime } from "../messages/trainer-time.ts";
import type { ReadyBatch, TrainerSnapshot, TrainerSpec } from "../messages/training-wire.ts";

export interface AckRecord {
  readonly at: number;
  readonly metrics: Readonly<Record<string, number | null>>;
  /** What was answered, for a repeat. */
  readonly reply: Acked;
  /** The lease it was trained under: who had it may say so again. Absent where nobody knows. */
  readonly lease?: number;
  /** Null: nothing was counted. */
  readonly time: StepTime | null;
}

export interface DeliveredBatch extends ReadyBatch {
  readonly state: "ready" | "leased" | "acked" | "dead" | "void";
  /** Leases that came to nothing, and the one that goes on. */
  readonly attempts: number;
  readonly ack: AckRecord | null;
  /** What became of its last lease, when that was not an acknowledgement. */
  readonly fault: { readonly lease: number; readonly reason: string } | null;
}

export interface Lease {
  /** Of all leases of the run, from 1: its id is made of it. */
  readonly serial: number;
  readonly step: number;
  readonly attempt: number;
  readonly ttl_ms: number;
  readonly expires_at: number;
  readonly by: "pull" | "push";
  /** Of an offer: its answer has come, so the acknowledgement will be a call of its own. */
  readonly answered?: true;
}

/** A batch that was offered by push, or is about to be: a lease once the trainer takes it. */
export type Offer = Omit<Lease, "expires_at" | "by" | "answered">;

export interface Trainer {
  readonly id: string;
  readonly kind: string;
  readonly last_seen_at: number;
}

/** What the fleet of a run has heard. */
export interface FleetTold {
  readonly told: { readonly generation: number; readonly version: number } | null;
  readonly released: boolean;
}

export interface TrainerState {
  readonly seq: number;
  /** Of registrations. 0: none yet. */
  readonly epoch: number;
  readonly generation: number;
  readonly reset_to: number;
  readonly published: number;
  readonly acked_step: number;
  readonly trainer: Trainer | null;
  readonly batches: readonly DeliveredBatch[];
  readonly lease: Lease | null;
  readonly offer: Offer | null;
  /** Leases and offers so far. */
  readonly serials: number;
  readonly push: {
    /** Offers in a row that reached nobody. */
    readonly misses: number;
    readonly next_at: number;
    /** The trainer wants no more of them until it registers again. */
    readonly stopped: boolean;
  };
  /** Version each engine serves. */
  readonly replicas: Readonly<Record<string, number>>;
  /** Engines that have not said what they serve since weights were taken back; absent: none. */
  readonly unheard?: readonly string[];
  /** Of a run on a fleet: what that has heard. */
  readonly fleet?: FleetTold;
  readonly paused: boolean;
  readonly ended: boolean;
  /** The last acknowledgement that the run's object is known to have heard of. */
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

/** Everything was trained, or nothing more is to be. */
export function isOver(state: TrainerState, { max_steps }: DeliveryTerms): boolean {
  return state.ended || state.acked_step >= max_steps;
}

/** The batch that is to be trained now, whatever its state. */
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

/** Something the run's object must hear of. */
export function noteNews(state: TrainerState): TrainerState {
  return { ...state, seq: state.seq + 1 };
}

/** A trainer that leases and has asked for nothing this long is not waiting: it is not there. */
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

/** `acks`: those the run's object does not know of. */
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
