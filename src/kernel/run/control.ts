/**
 * What the owner can do with a run: pause it, change its window, retry it, cancel one rollout. Each is one function in
 * one transaction, and a repeated call changes nothing.
 *
 * Invariants. A paused run lets running rollouts finish and dispatches nothing. An ended rollout never changes: another
 * attempt is another rollout in the same slot, and `planned` grows by it. A cancelled run stays cancelled, and so does
 * a run that its cap ended, until the reservations of its lost calls are released.
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

/** The failure code of a run in which several rollouts stopped the whole platform. */
export const STOPS_PLATFORM = "environment_stops_platform";

/** The status, where a run that was paused and could continue is "paused". */
export function statusOf(head: RunHead): RunStatus {
  return isPaused(head) ? "paused" : head.status;
}

export function isPaused({ paused, stop, settled_at }: RunHead): boolean {
  return paused && stop === null && settled_at === null;
}

/** How many rollouts may run at once: the value set since, or that of the request. */
export function maxConcurrentOf(spec: RunSpec, head: RunHead): number {
  return head.max_concurrent ?? spec.max_concurrent;
}

/** Epoch milliseconds; null without a deadline, and once dispatch has ended. */
export function deadlineOf(
  { limits, created_at }: RunSpec,
  { deadline_from, stop, settled_at }: RunHead,
): number | null {
  if (limits.deadline_s === undefined || stop !== null || settled_at !== null) return null;
  return (deadline_from ?? created_at) + limits.deadline_s * 1000;
}

/** Why a rollout must stop; null if it need not. */
export function cancelReasonOf({ stop }: RunHead, row: { readonly cancel: CancelReason | null }): CancelReason | null {
  if (stop?.kind === "cancel") return stop.reason;
  return stop?.code === STOPS_PLATFORM ? "overload" : row.cancel;
}

/** True if no judge may be called. A run whose cap is reached still calls judges as far as the rest of it allows. */
export function stopsJudging({ stop }: Pick<RunHead, "stop">): boolean {
  return stop?.kind === "cancel" && stop.reason !== "budget";
}

/** True while all running rollouts must be notified to stop. */
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
    const event: RunPaused = { status: statusOf(store.head()), reason: "user" };
    announce(store, paused ? "run.paused" : "run.resumed", event, now);
  });
}

export function setMaxConcurrent(store: RunStore, max_concurrent: number): void {
  store.transaction(() => store.saveHead({ ...store.head(), max_concurrent }));
}

/** Marks one rollout to be stopped. A rollout that has reported keeps its end. False: it was never dispatched. */
export function cancelOne(store: RunStore, place: RolloutSlot): boolean {
  const row = store.rollout(place);
  if (row === null) return false;
  if (row.status === "running" && row.cancel === null) {
    store.setRollout(row.seq, { cancel: "user", told: 0 });
  }
  return true;
}

/** Creates another attempt for each slot without a score. An ended run resumes, with its undispatched rollouts too. */
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

/** The group of which only the first members were ever dispatched; null if there is none. */
function cutGroup(
  { rollouts_per_example: members }: RunSpec,
  { dispatched, retries_dispatched }: RunHead,
): number | null {
  const firsts = dispatched - retries_dispatched;
  return firsts % members === 0 ? null : Math.floor(firsts / members);
}

/** Adds `added` attempts to dispatch. An ended run is reopened if it has anything to dispatch. */
function grow(store: RunStore, spec: RunSpec, added: number, now: number): void {
  const head = store.head();
  const grown = { ...head, retried: head.retried + added, row_current: false };
  if (head.settled_at === null) store.saveHead(grown);
  else if (pendingOf(spec, grown) > 0) reopen(store, grown, now);
}

function refusedRetry({ training }: RunSpec, { stop, settled_at, cap }: RunHead): RetryRefusal | null {
  // Its groups are closed with the attempts they have: another attempt would belong to no group.
  if (training !== undefined) return "training";
  if (stop?.kind === "cancel" && stop.reason === "user") return "cancelled";
  // The cap is spent and is never raised; but reservations of lost calls may have been released.
  const capped = cap.closed === true || (stop?.kind === "cancel" && stop.reason === "budget");
  if (capped && cap.reopens !== true) return "capped";
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
  // The run's earlier objects may be freed already: new attempts get other objects.
  store.shards.forget();
  store.dropEnd();
  announce(store, "run.resumed", { status: "running", reason: "retry" } satisfies RunPaused, now);
}

/** Records a message that ended in a dead-letter queue. Reconciliation does its work. */
export function noteDeadLetter(store: RunStore, queue: string, message: RunMessage, now: number): void {
  store.transaction(() => {
    store.addDeadLetter(queue, JSON.stringify(message), now);
    const head = store.head();
    store.saveHead({ ...head, dead_letters: head.dead_letters + 1, row_current: false });
  });
  logError("dead letter", { ...idsOf(message), queue }, new Error(`a message of kind ${message.kind}`));
}
