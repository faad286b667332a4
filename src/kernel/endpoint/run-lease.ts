/**
 * A run's side of its endpoint's lease: what it was granted, what it has reported, and when it must report more. Pure;
 * it is stored in the run's head, so it changes in the same write as the rollouts.
 *
 * Invariants. No rollout is dispatched beyond the lease or after its end, and during a request none beyond those it
 * reported. The endpoint is asked at most once a second, never per rollout. Calls per minute are a token bucket: a
 * dispatch takes the average number of calls of a rollout, and its end settles the difference. The bucket holds at most
 * the calls of a tenth of a minute.
 */
import type { SerializedError } from "../../contract/errors.ts";
import type { RunView } from "../../contract/run.ts";
import type { GrantedLease, Need, Outcomes } from "../messages/endpoint-wire.ts";
import { addLatencies, type Latencies } from "../messages/latency.ts";
import type { RolloutReport } from "../messages/wire.ts";
import { FAILURES_TO_OPEN, isCrowded, NO_OUTCOMES, SQUEEZE_STEP_MS } from "./health.ts";
import { LEASE_MS, RENEW_MS } from "./lease-state.ts";

/** Suffix of the run's id for its judges: on an endpoint that the policy uses too, the run has two leases. */
const JUDGES = "/judges";

/** What a rollout, or a call to a judge, met at its endpoint. */
export interface Met extends Pick<RolloutReport, "failure" | "turns" | "reused" | "calls" | "limited" | "latencies"> {
  readonly error: Pick<SerializedError, "message" | "retryable"> | null;
}

export interface LeaseState {
  readonly grant: GrantedLease | null;
  readonly told: Need;
  readonly asked_at: number;
  /** Requests without an answer in a row: failed ones, and one that is under way or was interrupted. */
  readonly misses: number;
  /** Until then a lease may exist for the run, even if the answer to its request was lost. Absent: none does. */
  readonly held_until?: number;
  /** The endpoint would grant something else now. */
  readonly changed: boolean;
  /** Tokens of the bucket (calls that may be made) at `tokens_at`. */
  readonly tokens: number;
  readonly tokens_at: number;
  /** The number of ended rollouts, and of their calls. */
  readonly ended: number;
  readonly calls: number;
  /** Outcomes since the last report. */
  readonly outcomes: Outcomes;
}

const NOTHING: Need = { running: 0, wants: 0, more: false };

export const NEW_LEASE: LeaseState = {
  grant: null,
  told: NOTHING,
  asked_at: 0,
  misses: 0,
  changed: false,
  tokens: 0,
  tokens_at: 0,
  ended: 0,
  calls: 0,
  outcomes: NO_OUTCOMES,
};

const ASK_EVERY_MS = 1000;
const RENEW_EARLY_MS = 60_000;
const LONGEST_WAIT_MS = 60_000;
/** This many failures in a row are reported at once; fewer wait for the next request. */
const STREAK_TO_TELL = 3;
const MINUTE_MS = 60_000;
/** The capacity of the bucket: the calls of this time. */
const BURST_MS = 6000;
/** Paced dispatch happens in blocks, with one alarm for each. */
const BLOCK_MS = 1000;

/** How many rollouts the endpoint lets the run dispatch now. */
export function leaseRemaining(lease: LeaseState, running: number, now: number): number {
  const { grant: grantedLease } = lease;
  if (grantedLease === null || grantedLease.lease_until <= now) return 0;
  // The circuit is about to open: rollouts dispatched before the endpoint has the report would only fail.
  if (streakOf(grantedLease, lease.outcomes) >= FAILURES_TO_OPEN) return 0;
  const paced = grantedLease.rate === null ? grantedLease.permits : Math.floor(refill(lease, now) / callsEach(lease));
  return Math.max(0, Math.min(grantedLease.permits - running, paced));
}

/** When the endpoint is to be asked, in epoch milliseconds; null if the run has left and has reported that. */
export function askAt(lease: LeaseState, need: Need, now: number): number | null {
  const { grant: grantedLease, asked_at, misses } = lease;
  const over = isOver(need);
  if (over && heldUntil(lease) <= now) return null;
  // The clock was set back, so the time since the last request is unknown.
  if (asked_at > now) return now;
  const wait = Math.min(LONGEST_WAIT_MS, ASK_EVERY_MS * 2 ** misses);
  if (over || misses > 0 || grantedLease === null || isNews(lease, grantedLease, need)) return asked_at + wait;
  return asked_at + RENEW_MS;
}

/** True if it is to be asked in this tick. A mere renewal may be early, so that one alarm serves all leases. */
export function isDue(lease: LeaseState, need: Need, now: number): boolean {
  const at = askAt(lease, need, now);
  if (at === null) return false;
  const renewed = at === lease.asked_at + RENEW_MS;
  return at <= now + (renewed ? RENEW_EARLY_MS : 0);
}

/** When paced dispatch continues; null if it does not wait for the bucket. */
export function paceAt(lease: LeaseState, { running, more }: Need, now: number): number | null {
  const { grant: grantedLease } = lease;
  if (!more || !grantedLease?.rate || grantedLease.permits <= running || grantedLease.lease_until <= now) {
    return null;
  }
  const tokens = refill(lease, now);
  if (tokens >= callsEach(lease)) return null;
  const block = Math.max(callsEach(lease), (grantedLease.rate * BLOCK_MS) / MINUTE_MS);
  return now + Math.ceil(((block - tokens) * MINUTE_MS) / grantedLease.rate);
}

/** Called before the request is sent. Until the grant arrives nothing beyond the report is dispatched. */
export function beginAsk(lease: LeaseState, need: Need, now: number): LeaseState {
  const grantedLease = lease.grant && {
    ...lease.grant,
    permits: Math.min(lease.grant.permits, need.running),
  };
  const held_until = isOver(need) ? heldUntil(lease) : now + LEASE_MS;
  const misses = lease.misses + 1;
  return {
    ...lease,
    grant: grantedLease,
    told: need,
    asked_at: now,
    misses,
    held_until,
    changed: false,
    outcomes: NO_OUTCOMES,
  };
}

/** A run that has left holds nothing. */
export function takeLease(lease: LeaseState, grantedLease: GrantedLease, now: number): LeaseState {
  const left = isOver(lease.told);
  return {
    ...lease,
    grant: left ? null : grantedLease,
    held_until: left ? 0 : grantedLease.lease_until,
    misses: 0,
    tokens: refill(lease, now),
    tokens_at: now,
  };
}

/** The request failed: what it reported must be reported again, before later outcomes. */
export function undoAsk(lease: LeaseState, lost: Outcomes): LeaseState {
  const { outcomes } = lease;
  const streak = outcomes.ok_at === null ? lost.streak + outcomes.streak : outcomes.streak;
  return {
    ...lease,
    outcomes: {
      ...outcomes,
      ok_at: outcomes.ok_at ?? lost.ok_at,
      streak,
      error: outcomes.error ?? lost.error,
      ...latenciesOf(addLatencies(lost.latencies, outcomes.latencies)),
    },
  };
}

export function afterDispatch(lease: LeaseState, count: number, now: number): LeaseState {
  if (lease.grant?.rate == null) return lease;
  const tokens = refill(lease, now) - count * callsEach(lease);
  return { ...lease, tokens, tokens_at: now };
}

/** At a rollout's end: settles the number of its calls, and counts what it met. */
export function afterEnd(lease: LeaseState, report: Met, now: number): LeaseState {
  const paced = lease.grant?.rate != null;
  const tokens = paced ? refill(lease, now) + callsEach(lease) - report.calls : lease.tokens;
  return {
    ...lease,
    tokens,
    tokens_at: paced ? now : lease.tokens_at,
    ended: lease.ended + 1,
    calls: lease.calls + report.calls,
    outcomes: countMet(lease.outcomes, report, now),
  };
}

/** True for a run that needs the lease no more. */
export function isOver({ running, wants, usual = 0 }: Need): boolean {
  return running === 0 && wants === 0 && usual === 0;
}

/** Why a run with rollouts left to dispatch waits; null if it does not, or only for its own rollouts. */
export function leaseStatusReason(lease: LeaseState, running: number, now: number): RunView["status_reason"] {
  const { grant: grantedLease } = lease;
  if (grantedLease === null) return null;
  const paced = grantedLease.rate !== null && refill(lease, now) < callsEach(lease);
  if (grantedLease.flow !== null || !paced || grantedLease.permits <= running) return grantedLease.flow;
  return {
    state: "rate_limited",
    reason: `the endpoint's rpm limit gives this run ${grantedLease.rate} requests a minute`,
  };
}

function latenciesOf(latencies: Latencies | undefined): Pick<Outcomes, "latencies"> {
  return latencies === undefined ? {} : { latencies };
}

function countMet(before: Outcomes, met: Met, now: number): Outcomes {
  const { failure, error, turns, reused, calls, limited = 0 } = met;
  const past = now - before.counted_from >= SQUEEZE_STEP_MS;
  const from = past ? { ...before, calls: 0, limited: 0, counted_from: now } : before;
  const times = latenciesOf(addLatencies(before.latencies, met.latencies));
  const counted = { ...from, ...times, calls: from.calls + calls, limited: from.limited + limited };
  // An error that a retry cannot fix says nothing about the endpoint's health: the endpoint has answered.
  const failed = (failure === "provider" || failure === "timeout") && error?.retryable === true;
  if (failed) return { ...counted, streak: before.streak + 1, error: error.message };
  return turns === (reused?.turns ?? 0) ? counted : { ...counted, ok_at: now, streak: 0, error: null };
}

function heldUntil({ grant: grantedLease, held_until = 0 }: LeaseState): number {
  return Math.max(held_until, grantedLease?.lease_until ?? 0);
}

function isNews({ told: latenciesOf, changed, outcomes }: LeaseState, grantedLease: GrantedLease, need: Need): boolean {
  const { running, wants, more } = need;
  const { permits: quota } = grantedLease;
  const holds = Math.max(latenciesOf.running, quota);
  const needs = Math.max(running, Math.min(quota, wants));
  return (
    changed ||
    wants > latenciesOf.wants ||
    isCrowded(outcomes) ||
    outcomes.streak >= STREAK_TO_TELL ||
    streakOf(grantedLease, outcomes) >= FAILURES_TO_OPEN ||
    (grantedLease.watched && outcomes.ok_at !== null) ||
    (grantedLease.shared && needs < holds) ||
    (grantedLease.rate !== null && more !== latenciesOf.more)
  );
}

/** Failures in a row: those that the endpoint has counted, and those since. */
function streakOf({ streak }: GrantedLease, { ok_at, streak: since }: Outcomes): number {
  return ok_at === null ? streak + since : since;
}

/** The average number of calls of an ended rollout. */
function callsEach({ ended, calls }: LeaseState): number {
  return ended === 0 ? 1 : Math.max(1, calls / ended);
}

function refill(lease: LeaseState, now: number): number {
  const rate = lease.grant?.rate ?? 0;
  const most = Math.max(callsEach(lease), (rate * BURST_MS) / MINUTE_MS);
  const since = Math.max(0, now - lease.tokens_at);
  return Math.min(most, lease.tokens + (rate * since) / MINUTE_MS);
}

/** The name under which the judges of a run have their lease. */
export function judgesOf(runId: string): string {
  return `${runId}${JUDGES}`;
}

/** The run behind the name, its own or that of its judges. */
export function runOf(asker: string): string {
  return asker.endsWith(JUDGES) ? asker.slice(0, -JUDGES.length) : asker;
}
