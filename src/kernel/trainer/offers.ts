/**
 * When a batch is offered to a trainer's address, and what its answer means. Pure; times are epoch milliseconds.
 *
 * Invariants. Only the next batch is offered, and only while it is not leased. The same lease is offered until the
 * trainer takes it or refuses it; a refusal costs the batch an attempt. A trainer that is busy or cannot be reached
 * costs it none, however long that lasts. After a 410 nothing is offered until the trainer registers again; it may
 * lease meanwhile.
 */

import { seededRandom } from "../../contract/random.ts";
import type { BatchManifest, BatchOffer, LeaseView } from "../../contract/trainer-wire.ts";
import type { Send } from "../clients/outgoing.ts";
import { type OfferReply, offerBatch } from "../clients/trainer.ts";
import { databaseOf } from "../db/database.ts";
import { sealedPushSecret } from "../db/seals.ts";
import { type AllowedHosts, allowedHosts, wayOut } from "../kit/address.ts";
import { openSealed } from "../kit/sealed-values.ts";
import { signedHeaders } from "../kit/sign-webhook.ts";
import type { ReadyBatch, TrainerSpec } from "../messages/training-wire.ts";
import { ack, leaseTaken } from "./batch-state.ts";
import {
  batchAt,
  type DeliveredBatch,
  type DeliveryTerms,
  isOver,
  nextBatch,
  noteNews,
  type Offer,
  type TrainerState,
  withBatch,
} from "./state.ts";

/** A longer manifest is not sent: the trainer fetches it by its URL. */
const INLINE_BYTES = 20_000;

export interface OfferedBatch {
  readonly batch: ReadyBatch;
  readonly manifest: BatchManifest;
  readonly lease: LeaseView;
  readonly epoch: number;
  readonly now: number;
  /** The network to send it by, replaced by tests. */
  readonly network: Send | undefined;
}

export const OFFER_TIMEOUT_MS = 30_000;
/** Waits after offers that did not reach the trainer: after the first, the second, and so on; then always the last. */
const WAITS_MS = [5000, 15_000, 60_000, 300_000] as const;
const LONGEST_WAIT_MS = 300_000;
/** The wait if a busy trainer names no time. */
const BUSY_MS = 15_000;
/** The shortest wait: `retry-after: 0` must not cause a busy loop. */
const SHORTEST_BUSY_MS = 1000;
const LONGEST_BUSY_MS = 600_000;

/** When to make the next offer; null if there is nothing to offer or no address. */
export function offerAt(state: TrainerState, terms: DeliveryTerms): number | null {
  if (terms.target.delivery === "pull" || state.push.stopped || state.paused) return null;
  if (isOver(state, terms) || state.lease !== null) return null;
  return nextBatch(state)?.state === "ready" ? state.push.next_at : null;
}

/** The offer to make now. If its answer never arrives, it is made again. */
export function beginOffer(
  before: TrainerState,
  terms: DeliveryTerms,
  now: number,
): { state: TrainerState; offer: Offer; batch: DeliveredBatch } | null {
  const at = offerAt(before, terms);
  const batch = nextBatch(before);
  if (at === null || at > now || batch === null) return null;
  const state = before.epoch === 0 ? registerPush(before, now) : before;
  const offer: Offer = state.offer ?? {
    serial: state.serials + 1,
    step: batch.step,
    attempt: batch.attempts + 1,
    ttl_ms: terms.target.lease_s * 1000,
  };
  const push = { ...state.push, next_at: now + OFFER_TIMEOUT_MS + WAITS_MS[0] };
  const serials = Math.max(state.serials, offer.serial);
  return { state: { ...state, offer, push, serials }, offer, batch };
}

/** A trainer that only receives offers need not register: the first offer registers it. */
function registerPush(state: TrainerState, now: number): TrainerState {
  const trainer = { id: "push", kind: "push", last_seen_at: now };
  return noteNews({ ...state, epoch: 1, trainer, time: { ...state.time, asks: false } });
}

export function answerOffer(
  state: TrainerState,
  terms: DeliveryTerms,
  { serial, step }: Offer,
  reply: OfferReply,
  now: number,
): TrainerState {
  const batch = batchAt(state, step);
  const stands = state.offer?.serial === serial || state.lease?.serial === serial;
  // The batch was leased meanwhile, or another trainer registered: the lease of this offer is lost.
  const late = reply.kind === "acked" && batch?.ack !== null;
  if (batch === null || !(stands || late)) return state;
  switch (reply.kind) {
    case "accepted": {
      const after = leaseTaken(state, serial, now);
      const { lease } = after;
      return lease?.serial === serial ? { ...after, lease: { ...lease, answered: true } } : after;
    }
    case "acked": {
      const { kind: _, ...said } = reply;
      const acked = { token: "", epoch: state.epoch, batch_id: batch.batch_id, ...said };
      const { state: after, answer } = ack(state, terms, serial, acked, null, now);
      // If the batch is acknowledged already, the answer has nothing new.
      if (answer.ok || batch.ack !== null) return after;
      const why = "message" in answer.refusal ? answer.refusal.message : answer.refusal.code;
      return spendTry(state, terms, batch, `the trainer's answer acknowledges another batch: ${why}`, now);
    }
    case "gone":
      return noteNews({ ...state, offer: null, push: { ...state.push, stopped: true } });
    case "busy":
      return later(state, now + busyMs(reply.retry_after_ms));
    case "refused":
      return spendTry(state, terms, batch, reply.message, now);
    case "absent":
      return noteMissed(state, batch, now);
  }
}

function busyMs(asked: number | null): number {
  return Math.min(LONGEST_BUSY_MS, Math.max(SHORTEST_BUSY_MS, asked ?? BUSY_MS));
}

function later(state: TrainerState, next_at: number): TrainerState {
  return { ...state, push: { ...state.push, next_at } };
}

function noteMissed(state: TrainerState, { batch_id }: DeliveredBatch, now: number): TrainerState {
  const { misses } = state.push;
  const wait = WAITS_MS[misses] ?? LONGEST_WAIT_MS;
  // Jitter: many runs may push to one trainer that was away, and must not all come back at once.
  const jitter = 1 + 0.2 * seededRandom("offer", batch_id, misses)();
  const push = { ...state.push, misses: misses + 1, next_at: Math.round(now + wait * jitter) };
  return { ...state, push };
}

/** The trainer refused the batch. */
function spendTry(
  state: TrainerState,
  { target }: DeliveryTerms,
  batch: DeliveredBatch,
  reason: string,
  now: number,
): TrainerState {
  const attempts = batch.attempts + 1;
  const fault = { lease: state.offer?.serial ?? 0, reason };
  const dead = attempts >= target.max_attempts;
  const changed: DeliveredBatch = { ...batch, attempts, fault, state: dead ? "dead" : "ready" };
  return noteNews({ ...noteMissed(withBatch(state, changed), batch, now), offer: null, lease: null });
}

/**
 * Sends one offer of a batch to the trainer's address: signed, and with the manifest if it is small. It never has
 * samples. Never throws: every failure here counts as a trainer that was not reached.
 */
export async function sendOffer(env: Env, spec: TrainerSpec, offered: OfferedBatch): Promise<OfferReply> {
  const { url } = spec.target;
  if (url === undefined) return { kind: "absent", message: "the run has no URL to push to" };
  const secret = await signedAndAllowed(env, spec);
  if ("message" in secret) return { kind: "absent", ...secret };
  const { batch, lease, now, network } = offered;
  const body = JSON.stringify(offerOf(spec, offered));
  const headers = signedHeaders(secret.text, `msg_${batch.batch_id}_${lease.attempt}`, body, now);
  const send = wayOut(env, secret.hosts, network);
  return await offerBatch({ url, body, headers, timeoutMs: OFFER_TIMEOUT_MS, send });
}

/** The signing secret and the allowed hosts; or a message if the secret is missing or cannot be read. */
async function signedAndAllowed(
  env: Env,
  { scope, run_id }: TrainerSpec,
): Promise<{ readonly text: string; readonly hosts: AllowedHosts } | { readonly message: string }> {
  try {
    const sealed = await sealedPushSecret(databaseOf(env), scope, run_id);
    if (sealed === null) return { message: "the run has no signing secret" };
    const text = await openSealed(env, { kind: "push_secret", scope, id: run_id, sealed });
    return { text, hosts: await allowedHosts(env, scope) };
  } catch (thrown) {
    return {
      message: `the signing secret cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    };
  }
}

function offerOf({ run_id, base_url }: TrainerSpec, { batch, manifest, lease, epoch, now }: OfferedBatch): BatchOffer {
  const { batch_id, step } = batch;
  const small = new TextEncoder().encode(JSON.stringify(manifest)).byteLength <= INLINE_BYTES;
  const manifest_url = `${base_url}/v1/runs/${run_id}/batches/${step}`;
  return {
    type: "trainer.batch.offer",
    timestamp: new Date(now).toISOString(),
    data: {
      ...{ run_id, batch_id, step, epoch, lease, base_url },
      ...(small ? { manifest } : { manifest_url }),
    },
  };
}
