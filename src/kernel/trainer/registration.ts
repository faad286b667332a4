/**
 * How a trainer registers, and how it continues from a checkpoint. Pure; times are epoch milliseconds.
 *
 * Invariants. Each registration has its own epoch and fences off the trainer before it. What the checkpoint has trained
 * is never trained again. What the checkpoint lacks is handed out again, unless weights made from it were published.
 * Only an explicit `reset_to` takes published weights back, and starts a new generation.
 */
import type { Registered } from "../../contract/trainer-wire.ts";
import { leftOut, waitEnded } from "../messages/trainer-time.ts";
import type { TrainerRefusal, TrainerRpc } from "../messages/training-wire.ts";
import { acknowledge, expireLease, grant, type Outcome, refused, release } from "./batch-state.ts";
import {
  type DeliveredBatch,
  type DeliveryTerms,
  isOver,
  noteNews,
  registeredReply,
  type TrainerState,
} from "./state.ts";

type RegisterAsked = Parameters<TrainerRpc["register"]>[0];

/** `past`: the batch of `last_acked`, if it is not among those that may still be handed out. */
export function register(
  before: TrainerState,
  terms: DeliveryTerms,
  asked: RegisterAsked,
  past: DeliveredBatch | null,
  now: number,
): Outcome<Registered> {
  const absent = before.trainer?.last_seen_at ?? now;
  const returned = expireLease({ ...before, time: leftOut(before.time, absent, now) }, terms, now);
  const closed = closeWithCheckpoint(returned, asked.last_acked, past, now);
  if (typeof closed === "string") {
    return refused(before, { code: "conflict", message: closed, param: "last_acked" });
  }
  const { claimed } = closed;
  const held = asked.version ?? asked.reset_to ?? Math.max(before.published, claimed);
  const refusal = refuseVersion(closed.state, terms, asked.reset_to, held);
  if (refusal !== null) return refused(before, refusal);
  const freed = release(closed.state, terms, "another registration ended its lease");
  const { published } = freed;
  const back = held < published ? reset(freed, held) : resume(freed, terms, held);
  const { trainer_id: id, kind } = asked;
  const state: TrainerState = noteNews({
    ...back,
    epoch: back.epoch + 1,
    trainer: { id, kind, last_seen_at: now },
    offer: null,
    time: { ...waitEnded(back.time, now), asks: terms.target.delivery === "pull" },
    push: { misses: 0, next_at: now, stopped: false },
  });
  return grant(state, registeredReply(state, terms));
}

/** Counts what the trainer's checkpoint contains as acknowledged (`claimed`: its step); or says why it cannot. */
function closeWithCheckpoint(
  state: TrainerState,
  last: RegisterAsked["last_acked"],
  past: DeliveredBatch | null,
  now: number,
): { state: TrainerState; claimed: number } | string {
  if (last === null) return { state, claimed: 0 };
  const batch = state.batches.find(({ batch_id }) => batch_id === last.batch_id) ?? past;
  if (batch === null) return `last_acked: this run has no batch ${last.batch_id}`;
  if (batch.sha256 !== last.sha256) return `last_acked: sha256 does not match ${batch.batch_id}`;
  if (batch.state === "void") {
    return `last_acked: ${batch.batch_id} is void, since the run was reset to version ${state.reset_to}: register with that version`;
  }
  const { acked_step } = state;
  if (batch.step <= acked_step) return { state, claimed: batch.step };
  if (batch.step > acked_step + 1) {
    return `last_acked: batch ${acked_step + 1} comes before ${batch.batch_id} and was not acknowledged`;
  }
  const lease = state.lease?.step === batch.step ? state.lease.serial : batch.fault?.lease;
  return { state: acknowledge(state, batch, { metrics: {}, lease }, now), claimed: batch.step };
}

function refuseVersion(
  state: TrainerState,
  terms: DeliveryTerms,
  reset_to: number | undefined,
  held: number,
): TrainerRefusal | null {
  const { published, acked_step } = state;
  if (reset_to !== undefined && reset_to !== held) {
    const message = `reset_to is ${reset_to}, but version is ${held}: they must be the same`;
    return { code: "conflict", message, param: "reset_to" };
  }
  if (held > acked_step) {
    const message = `version ${held} is ahead of the last acknowledged batch, ${acked_step}: send last_acked with it`;
    return { code: "version_ahead", message, next_step: acked_step + 1 };
  }
  if (held >= published) return null;
  if (reset_to === undefined) return { code: "needs_reset", published };
  return isOver(state, terms) ? { code: "run_finished" } : null;
}

/**
 * Makes the batches that its weights lack ready again, and marks engines that serve weights made from them. Does
 * nothing if the run is over.
 */
function resume(state: TrainerState, terms: DeliveryTerms, held: number): TrainerState {
  if (isOver(state, terms)) return state;
  const batches = state.batches.map((batch) =>
    batch.step > held && batch.state === "acked"
      ? { ...batch, state: "ready" as const, attempts: 0, ack: null }
      : batch,
  );
  return { ...state, batches, acked_step: held, unheard: servingAfter(state, held) };
}

/** Voids everything after the version: the run's object cuts new batches. */
function reset(state: TrainerState, version: number): TrainerState {
  return {
    ...state,
    generation: state.generation + 1,
    reset_to: version,
    published: version,
    acked_step: version,
    batches: [],
    lease: null,
    unheard: Object.keys(state.replicas),
  };
}

/** Engines that have not reported yet, and those that serve a version after this one. */
function servingAfter({ replicas, unheard = [] }: TrainerState, held: number): string[] {
  const after = Object.keys(replicas).filter((name) => (replicas[name] ?? 0) > held);
  return [...new Set([...unheard, ...after])];
}
