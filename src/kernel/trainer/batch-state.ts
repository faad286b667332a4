/**
 * The rules for a trainer's calls: leases of batches and their outcomes. Pure; times are epoch milliseconds.
 *
 * Invariants. Batches are trained in the order of their steps: a batch is leased only if every batch before it is
 * acknowledged, and only one at a time. Every call carries an epoch, and only the epoch of the latest registration is
 * valid: a trainer that was replaced can change nothing. A batch is acknowledged under its current lease, and a repeat
 * under the same lease gets the first answer again. A refused call changes only the time when the trainer was last
 * seen.
 */

import { leaseBegun, leftOut, stepAcked, stepReported, waitingSince } from "../messages/trainer-time.ts";
import type { ReadyBatch, TrainerRefusal, TrainerRpc, Waiting } from "../messages/training-wire.ts";
import {
  batchAt,
  type DeliveredBatch,
  type DeliveryTerms,
  isOver,
  type Lease,
  nextBatch,
  noteNews,
  noteSeen,
  type Offer,
  type TrainerState,
  withBatch,
} from "./state.ts";

type LeaseAsked = Parameters<TrainerRpc["lease"]>[0];
type AckAsked = Parameters<TrainerRpc["ack"]>[1];
type NackAsked = Parameters<TrainerRpc["nack"]>[1];
/** The number of the lease that a call is about; null if its token does not belong to that lease. */
export type Serial = number | null;

/** The outcome of a call: the state after it, and its answer. */
export interface Outcome<T> {
  readonly state: TrainerState;
  readonly answer: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: TrainerRefusal };
}

/** Long enough to avoid a busy loop if the trainer does not wait inside the request. */
const ASK_AGAIN_S = 1;
const PAUSED_ASK_AGAIN_S = 5;
const EXPIRED = "its lease ended without a heartbeat";

export function refused<T>(state: TrainerState, refusal: TrainerRefusal): Outcome<T> {
  return { state, answer: { ok: false, refusal } };
}

export function grant<T>(state: TrainerState, value: T): Outcome<T> {
  return { state, answer: { ok: true, value } };
}

/** Why a call with this epoch is refused; null if it is valid. */
export function fence({ epoch: current }: TrainerState, epoch: number): TrainerRefusal | null {
  return epoch === current ? null : { code: "epoch_fenced", epoch: current };
}

/** Adds new batches of the current generation, and the current state of the run. */
export function offer(
  state: TrainerState,
  batches: readonly ReadyBatch[],
  known: Parameters<TrainerRpc["ready"]>[1],
  now: number,
): TrainerState {
  const taken_up = new Set(state.batches.map(({ step }) => step));
  const fresh = batches.filter(({ step, generation }) => {
    const isNew = generation === state.generation && step > state.acked_step;
    if (!isNew || taken_up.has(step)) return false;
    taken_up.add(step);
    return true;
  });
  // A run that was retried or resumed continues.
  const { ended } = known;
  const added = fresh.map(
    (batch): DeliveredBatch => ({ ...batch, state: "ready", attempts: 0, ack: null, fault: null }),
  );
  const after = [...state.batches, ...added].sort((one, other) => one.step - other.step);
  const { paused, acked_step: known_acked } = known;
  return { ...setPaused(state, known, now), batches: after, paused, ended, known_acked };
}

/** Time does not count for the trainer while the run is paused. */
function setPaused(state: TrainerState, { paused }: Parameters<TrainerRpc["ready"]>[1], now: number): TrainerState {
  const { paused_at } = state.time;
  const resumed = !paused && paused_at !== null && state.lease === null;
  const counted = resumed ? leftOut(state.time, paused_at, now) : state.time;
  return { ...state, time: { ...counted, paused_at: paused ? (paused_at ?? now) : null } };
}

/** Ends a lease whose time has passed. */
export function expireLease(state: TrainerState, terms: DeliveryTerms, now: number): TrainerState {
  if (state.lease === null || state.lease.expires_at > now) return state;
  return release(state, terms, EXPIRED);
}

/** Ends the lease without an acknowledgement. Its batch is offered again, until it has used all its attempts. */
export function release(
  state: TrainerState,
  { target }: DeliveryTerms,
  reason: string,
  { spent = true, final = false } = {},
): TrainerState {
  const { lease } = state;
  const batch = lease === null ? null : batchAt(state, lease.step);
  if (lease === null || batch === null) return { ...state, lease: null };
  const attempts = batch.attempts - (spent ? 0 : 1);
  const dead = final || (spent && attempts >= target.max_attempts);
  const fault = { lease: lease.serial, reason };
  const changed: DeliveredBatch = { ...batch, attempts, fault, state: dead ? "dead" : "ready" };
  return noteNews({ ...withBatch(state, changed), lease: null });
}

export function lease(
  before: TrainerState,
  terms: DeliveryTerms,
  asked: LeaseAsked,
  now: number,
): Outcome<{ lease: Lease; batch: DeliveredBatch } | Waiting> {
  const fenced = fence(before, asked.epoch);
  if (fenced !== null) return refused(before, fenced);
  const state = noteSeen(expireLease(before, terms, now), now);
  const refusal = refuseLease(state, terms, asked);
  if (refusal !== null) return refused(state, refusal);
  const batch = nextBatch(state);
  if (batch !== null && state.lease !== null) {
    // The reply to the first request was lost.
    return grant(state, { lease: state.lease, batch });
  }
  if (state.paused || batch?.state === "dead") {
    return grant(state, { waiting: "paused", retry_after_s: PAUSED_ASK_AGAIN_S });
  }
  if (batch === null) {
    const waiting = { waiting: "waiting_for_rollouts", retry_after_s: ASK_AGAIN_S } as const;
    return grant({ ...state, time: waitingSince(state.time, now) }, waiting);
  }
  const ttl_ms = (asked.ttl_s ?? terms.target.lease_s) * 1000;
  const serial = state.serials + 1;
  const offer = { serial, step: batch.step, attempt: batch.attempts + 1, ttl_ms };
  return take({ ...state, serials: serial }, offer, batch, "pull", now);
}

function refuseLease(
  state: TrainerState,
  terms: DeliveryTerms,
  { trainer_id, want_step }: LeaseAsked,
): TrainerRefusal | null {
  const { trainer, lease: held, push } = state;
  if (isOver(state, terms)) return { code: "run_finished" };
  if (trainer?.id !== trainer_id) {
    const message = `this epoch belongs to the trainer ${trainer?.id}: register to take over`;
    return { code: "conflict", message, param: "trainer_id" };
  }
  const next_step = state.acked_step + 1;
  if (want_step !== next_step) return { code: "step_mismatch", next_step };
  if (held?.by === "push") {
    return { code: "lease_held", message: `batch ${next_step} was already accepted by push` };
  }
  if (terms.target.delivery !== "push" || push.stopped) return null;
  const message = "batches of this run are pushed to its trainer's url, not leased";
  return { code: "conflict", message };
}

/** Leases the batch to the trainer until the lease ends. */
export function take(
  state: TrainerState,
  { serial, step, attempt, ttl_ms }: Offer,
  batch: DeliveredBatch,
  by: Lease["by"],
  now: number,
): Outcome<{ lease: Lease; batch: DeliveredBatch }> {
  const held: Lease = { serial, step, attempt, ttl_ms, expires_at: now + ttl_ms, by };
  const leased: DeliveredBatch = { ...batch, state: "leased", attempts: attempt };
  const after = noteNews({
    ...withBatch(state, leased),
    lease: held,
    offer: null,
    push: { ...state.push, misses: 0 },
    time: leaseBegun(state.time, now),
  });
  return grant(after, { lease: held, batch: leased });
}

export function heartbeat(
  before: TrainerState,
  terms: DeliveryTerms,
  serial: Serial,
  epoch: number,
  now: number,
): Outcome<{ expires_at: number }> {
  const fenced = fence(before, epoch);
  if (fenced !== null) return refused(before, fenced);
  if (serial === null) return refused(before, { code: "wrong_token" });
  const state = noteSeen(leaseTaken(expireLease(before, terms, now), serial, now), now);
  if (isOver(state, terms)) return refused(state, { code: "run_finished" });
  const held = state.lease;
  if (held?.serial !== serial) return refused(state, { code: "lease_lost" });
  const expires_at = now + held.ttl_ms;
  return grant({ ...state, lease: { ...held, expires_at } }, { expires_at });
}

/** A call that names an offer proves that the trainer took it, even if its answer to the offer has not arrived. */
export function leaseTaken(state: TrainerState, serial: number, now: number): TrainerState {
  const { offer } = state;
  if (offer?.serial !== serial || state.lease !== null) return state;
  const batch = batchAt(state, offer.step);
  return batch === null ? state : take(state, offer, batch, "push", now).state;
}

/** `past`: the batch with this id, if it is not among those that may still be handed out. */
export function ack(
  before: TrainerState,
  terms: DeliveryTerms,
  serial: Serial,
  asked: AckAsked,
  past: DeliveredBatch | null,
  now: number,
): Outcome<NonNullable<DeliveredBatch["ack"]>["reply"]> {
  const fenced = fence(before, asked.epoch);
  if (fenced !== null) return refused(before, fenced);
  if (serial === null) return refused(before, { code: "wrong_token" });
  const state = noteSeen(leaseTaken(expireLease(before, terms, now), serial, now), now);
  const batch = state.batches.find(({ batch_id }) => batch_id === asked.batch_id) ?? past;
  if (batch === null) return refused(state, unknownBatch(asked.batch_id));
  const refusal = refuseAck(state, serial, asked, batch);
  if (refusal !== null) return refused(state, refusal);
  if (batch.ack !== null) {
    const after = withMetrics(state, batch, asked);
    return grant(after, batchAt(after, batch.step)?.ack?.reply ?? batch.ack.reply);
  }
  const pushed = state.lease?.by === "push";
  const after = acknowledge(state, batch, { ...asked, lease: serial }, now);
  const reply = batchAt(after, batch.step)?.ack?.reply;
  if (reply === undefined) throw new Error(`batch ${batch.step} no longer exists`);
  return grant(pushed ? { ...after, time: waitingSince(after.time, now) } : after, reply);
}

function refuseAck(state: TrainerState, serial: number, asked: AckAsked, batch: DeliveredBatch): TrainerRefusal | null {
  if (batch.state === "void") return { code: "lease_lost" };
  if (batch.ack === null || batch.ack.lease !== serial) {
    const held = leasedBatch(state, serial);
    // It was acknowledged by another holder, or by a holder that was not recorded.
    if (held === null && (batch.ack === null || batch.ack.lease !== undefined)) {
      return { code: "lease_lost" };
    }
    if (held !== null && held.batch_id !== batch.batch_id) {
      const message = `the lease is on the batch of step ${held.step}, ${held.batch_id}: acknowledge that`;
      return { code: "wrong_batch", message };
    }
  }
  if (batch.sha256 !== asked.sha256) {
    const message = `sha256: does not match: the sha256 of ${batch.batch_id} is ${batch.sha256}`;
    return { code: "conflict", message, param: "sha256" };
  }
  if (asked.produced_version !== batch.step) {
    const message = `produced_version: must be ${batch.step} for batch ${batch.step}`;
    return { code: "conflict", message, param: "produced_version" };
  }
  return null;
}

function unknownBatch(id: string): TrainerRefusal {
  const message = `no batch ${id}: send the batch_id of the lease's manifest`;
  return { code: "wrong_batch", message };
}

/**
 * The batch of a lease, also after the lease has ended, as long as the batch was not handed out again. Null if the
 * lease has no batch any more.
 */
function leasedBatch(state: TrainerState, serial: number): DeliveredBatch | null {
  const next = nextBatch(state);
  const ended = state.lease === null && next?.fault?.lease === serial;
  return state.lease?.serial === serial || ended ? next : null;
}

/** Adds the metrics of a batch that was counted as trained before its trainer reported metrics. */
function withMetrics(state: TrainerState, { step, batch_id }: DeliveredBatch, measured: Measured): TrainerState {
  const batch = batchAt(state, step);
  if (batch?.batch_id !== batch_id || batch.ack === null) return state;
  const { metrics } = measured;
  if (Object.keys(batch.ack.metrics).length > 0 || Object.keys(metrics).length === 0) return state;
  const { time: step_time, reply } = batch.ack;
  const ack = { ...batch.ack, metrics, reply: { ...reply, ...notFinite(measured) } };
  const time = step_time ? stepReported(state.time, step_time, metrics) : state.time;
  return noteNews({ ...withBatch(state, { ...batch, ack }), time });
}

/** What a trainer reports about a step: its metrics, and the names of those that were not finite numbers. */
type Measured = Pick<AckAsked, "metrics" | "not_finite">;

function notFinite({ not_finite = [] }: Measured): { not_finite?: string[] } {
  return not_finite.length === 0 ? {} : { not_finite: [...not_finite] };
}

/** `lease`: the lease it was trained under; absent if it is unknown. */
export function acknowledge(
  state: TrainerState,
  batch: DeliveredBatch,
  measured: Measured & { readonly lease?: number | undefined },
  now: number,
): TrainerState {
  const { batch_id, step } = batch;
  const { published } = state;
  const { lease, metrics } = measured;
  const reply = { batch_id, step, next_step: step + 1, published, ...notFinite(measured) };
  const { time, step: step_time } = stepAcked(state.time, metrics, now);
  const under = lease === undefined ? {} : { lease };
  const ack = { at: now, metrics, reply, time: step_time, ...under };
  const push = { ...state.push, misses: 0, next_at: now };
  return noteNews({
    ...withBatch(state, { ...batch, state: "acked", ack }),
    ...{ acked_step: step, lease: null, offer: null, push, time },
  });
}

export function nack(
  before: TrainerState,
  terms: DeliveryTerms,
  serial: Serial,
  asked: NackAsked,
  now: number,
): Outcome<{ state: "ready" | "dead" }> {
  const fenced = fence(before, asked.epoch);
  if (fenced !== null) return refused(before, fenced);
  if (serial === null) return refused(before, { code: "wrong_token" });
  const state = noteSeen(leaseTaken(expireLease(before, terms, now), serial, now), now);
  const batch = nextBatch(state);
  if (state.lease?.serial !== serial) {
    if (batch?.fault?.lease !== serial || batch.fault.reason === EXPIRED) {
      return refused(state, { code: "lease_lost" });
    }
    return grant(state, { state: batch.state === "dead" ? "dead" : "ready" });
  }
  const { reason, message, retryable } = asked;
  const said = message === undefined ? reason : `${reason}: ${message}`;
  // A trainer that shuts down does not cost the batch an attempt.
  const spent = reason !== "shutdown";
  const after = release(state, terms, said, { spent, final: !retryable });
  return grant(after, { state: nextBatch(after)?.state === "dead" ? "dead" : "ready" });
}

/** Hands a dead batch out again, with all its attempts. */
export function revive(state: TrainerState, step: number, now: number): TrainerState {
  const batch = batchAt(state, step);
  if (batch?.state !== "dead") return state;
  const push = { ...state.push, misses: 0, next_at: now };
  const ready: DeliveredBatch = { ...batch, state: "ready", attempts: 0 };
  return noteNews({ ...withBatch(state, ready), push });
}
