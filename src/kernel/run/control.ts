/**
 * What its owner does to a run while it goes on, or after: pause, another window, other attempts, one rollout less. Each
 * is one function in one transaction, and asked twice it does what it did once.
 *
 * Invariants. A paused run lets what runs finish and dispatches nothing. An ended rollout never changes: another attempt
 * is another rollout in the same slot, and `planned` grows by it. A run that was cancelled stays so,
 * and one whose own cap ended it, until holds of its lost calls are released.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { RunStatus } from "../../contract/run.ts";
import type { RunPaused } from "../../contract/run-events.ts";
import { isSameRequest } from "../kit/idempotency.ts";
import { idsOf, logError } from "../kit/log.ts";
import type { RetryOrder, RetryRefusal, RolloutSlot, RunMessage, RunSpec } from "../messages/wire.ts";
import { requestCancel } from "./accounting.ts";
import { forgetRefused } from "./refusals.ts";
import type { RunHead } from "./schema.ts";
import { announce, pendingOf } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** Why a run ended of which several rollouts stopped the whole platform. */
export const STOPS_PLATFORM = "environment_stops_platform";

/** Paused is how a run stands that could go on. */
export function statusOf(head: RunHead): RunStatus {
  return isPaused(head) ? "paused" : head.status;
}

export function isPaused({ paused, stop, settled_at }: RunHead): boolean {
  return paused && stop === null && settled_at === null;
}

/** Rollouts it may have running at once, as it was asked for or as it was changed since. */
export function maxConcurrentOf(spec: RunSpec, head: RunHead): number {
  return head.max_concurrent ?? spec.max_concurrent;
}

/** Epoch milliseconds; null without one, and once dispatch has ended. */
export function deadlineOf(
  { limits, created_at }: RunSpec,
  { deadline_from, stop, settled_at }: RunHead,
): number | null {
  if (limits.deadline_s === undefined || stop !== null || settled_at !== null) return null;
  return (deadline_from ?? created_at) + limits.deadline_s * 1000;
}

/** Why a rollout is to stop; null when nobody asked. */
export function cancelReasonOf({ stop }: RunHead, row: { readonly cancel: CancelReason | null }): CancelReason | null {
  if (stop?.kind === "cancel") return stop.reason;
  return stop?.code === STOPS_PLATFORM ? "overload" : row.cancel;
}

/** Whether no judge is asked any more. One whose cap is reached asks those that what is left covers. */
export function stopsJudging({ stop }: Pick<RunHead, "stop">): boolean {
  return stop?.kind === "cancel" && stop.reason !== "budget";
}

/** True while all that runs is to be told to stop. */
export function stopsAll(head: RunHead): boolean {
  return cancelReasonOf(head, { cancel: null }) !== null;
}

/** Ends the run once its deadline has passed. */
export function passDeadline(store: RunStore, spec: RunSpec, now: number): void {
  const deadline = deadlineOf(spec, store.head());
  if (deadline !== null && deadline <= now) requestCancel(store, spec, "deadline", now);
}

export function setPaused(store: RunStore, paused: boolean, now: number): void {
  store.transaction(() => {
    const head = store.head();
    if (head.stop !== null || head.settled_at !== null || head.paused === paused) return;
    store.saveHead({ ...head, paused, row_current: false });
    const told: RunPaused = { status: statusOf(store.head()), reason: "user" };
    announce(store, paused ? "run.paused" : "run.resumed", told, now);
  });
}

export function setMaxConcurrent(store: RunStore, max_concurrent: number): void {
  store.transaction(() => store.saveHead({ ...store.head(), max_concurrent }));
}

/** Asks one rollout to stop. One that has answered keeps its end; false: it was never dispatched. */
export function cancelOne(store: RunStore, place: RolloutSlot): boolean {
  const row = store.rollout(place);
  if (row === null) return false;
  if (row.status === "running" && row.cancel === null) {
    store.setRollout(row.seq, { cancel: "user", told: 0 });
  }
  return true;
}

/** Another attempt for what has no score. An ended run goes on, with what it had not dispatched. */
export function retry(
  store: RunStore,
  spec: RunSpec,
  { classes, key, hash, hashes_before }: RetryOrder,
  now: number,
): RetryRefusal | null {
  return store.transaction(() => {
    const seen = key === null ? null : store.request("retry", key);
    const asked = { requestHash: hash, ...(hashes_before && { requestHashesBefore: hashes_before }) };
    if (seen !== null) return isSameRequest(seen, asked) ? null : "key_reused";
    const refused = refusedRetry(spec, store.head());
    if (refused !== null) return refused;
    if (key !== null) store.rememberRequest("retry", key, hash);
    const cut = cutGroup(spec, store.head());
    grow(store, spec, store.retries.add(classes, spec.whole_groups, cut), now);
    return null;
  });
}

/** The group of which only the first members were ever dispatched; null when there is none. */
function cutGroup(
  { rollouts_per_example: members }: RunSpec,
  { dispatched, retries_dispatched }: RunHead,
): number | null {
  const firsts = dispatched - retries_dispatched;
  return firsts % members === 0 ? null : Math.floor(firsts / members);
}

/** `added` attempts more to dispatch; with anything to dispatch an ended run goes on. */
function grow(store: RunStore, spec: RunSpec, added: number, now: number): void {
  const head = store.head();
  const grown = { ...head, retried: head.retried + added, row_current: false };
  if (head.settled_at === null) store.saveHead(grown);
  else if (pendingOf(spec, grown) > 0) reopen(store, grown, now);
}

function refusedRetry({ training }: RunSpec, { stop, settled_at, cap }: RunHead): RetryRefusal | null {
  // Its groups are closed with what they have: another attempt would belong to none.
  if (training !== undefined) return "training";
  if (stop?.kind === "cancel" && stop.reason === "user") return "cancelled";
  // What it may cost in all is spent, and never raised; but lost calls may have been released.
  if (stop?.kind === "cancel" && stop.reason === "budget" && cap.reopens !== true) return "capped";
  return stop !== null && settled_at === null ? "draining" : null;
}

function reopen(store: RunStore, head: RunHead, now: number): void {
  store.saveHead({
    ...head,
    status: "running",
    error: null,
    stop: null,
    paused: false,
    settled_at: null,
    deadline_from: now,
    refusals: forgetRefused(head.refusals),
  });
  // Objects there were may be freed already: what is to come gets others.
  store.hosts.forget();
  store.dropEnd();
  announce(store, "run.resumed", { status: "running", reason: "retry" } satisfies RunPaused, now);
}

/** A message that its queue gave up on: on record, and the sweep does its work. */
export function noteDeadLetter(store: RunStore, queue: string, message: RunMessage, now: number): void {
  store.transaction(() => {
    store.addDeadLetter(queue, JSON.stringify(message), now);
    const head = store.head();
    store.saveHead({ ...head, dead_letters: head.dead_letters + 1, row_current: false });
  });
  logError("dead letter", { ...idsOf(message), queue }, new Error(`a message of kind ${message.kind}`));
}
