/**
 * The run's side of its endpoint's permits: what it was granted, what it has told, and when it must tell more. Pure; kept
 * in the run's head, so that it changes with the rollouts it is about.
 *
 * Invariants. No rollout is dispatched beyond the permits or past the lease, and while an ask is under way none beyond
 * those it told of. The endpoint is asked at most once a second, never per rollout. Calls a minute are a bucket: a
 * dispatch takes what a rollout needs on average, its end settles what it took; a tenth of a minute's calls gather at
 * most.
 */
import type { SerializedError } from "../../contract/errors.ts";
import type { RunView } from "../../contract/run.ts";
import type { Grant, Need, Outcomes } from "../messages/endpoint-wire.ts";
import { addLatencies, type Latencies } from "../messages/latency.ts";
import type { RolloutReport } from "../messages/wire.ts";
import { FAILURES_TO_OPEN, isCrowded, NO_OUTCOMES, SQUEEZE_STEP_MS } from "./health.ts";
import { LEASE_MS, RENEW_MS } from "./lease-state.ts";

/** Behind a run's id where its judges ask: an endpoint that is the policy's too knows the run twice. */
const JUDGES = "/judges";

/** What a rollout, or a judge that was asked, met at its endpoint. */
export interface Met extends Pick<RolloutReport, "failure" | "turns" | "calls" | "limited" | "latencies"> {
  readonly error: Pick<SerializedError, "message" | "retryable"> | null;
}

export interface LeaseState {
  readonly grant: Grant | null;
  readonly told: Need;
  readonly asked_at: number;
  /** Asks without an answer, in a row: those that failed, and one that is under way or was cut short. */
  readonly misses: number;
  /** Until then something may be held for the run, whether or not the answer to its ask arrived. Absent: nothing is. */
  readonly held_until?: number;
  /** The endpoint would grant something else now. */
  readonly changed: boolean;
  /** Calls that may be made, as of `tokens_at`. */
  readonly tokens: number;
  readonly tokens_at: number;
  /** Rollouts that ended, and their calls. */
  readonly ended: number;
  readonly calls: number;
  /** Since it was last told. */
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
/** So many failures in a row are told at once; fewer wait for the next ask. */
const STREAK_TO_TELL = 3;
const MINUTE_MS = 60_000;
/** What may gather while nothing is dispatched: calls of so long. */
const BURST_MS = 6000;
/** Paced dispatch comes in blocks, an alarm for each. */
const BLOCK_MS = 1000;

/** Rollouts the endpoint lets it dispatch now. */
export function leaseRoom(lease: LeaseState, running: number, now: number): number {
  const { grant } = lease;
  if (grant === null || grant.lease_until <= now) return 0;
  // The circuit is about to open: what would be dispatched before the endpoint has heard of it would only fail.
  if (streakOf(grant, lease.outcomes) >= FAILURES_TO_OPEN) return 0;
  const paced = grant.rate === null ? grant.permits : Math.floor(refill(lease, now) / callsEach(lease));
  return Math.max(0, Math.min(grant.permits - running, paced));
}

/** Epoch milliseconds at which the endpoint is to be asked; null for a run that is done with it, once it has heard so. */
export function askAt(lease: LeaseState, need: Need, now: number): number | null {
  const { grant, asked_at, misses } = lease;
  const over = isOver(need);
  if (over && heldUntil(lease) <= now) return null;
  // The clock was set back: how long ago it asked, nobody knows.
  if (asked_at > now) return now;
  const wait = Math.min(LONGEST_WAIT_MS, ASK_EVERY_MS * 2 ** misses);
  if (over || misses > 0 || grant === null || isNews(lease, grant, need)) return asked_at + wait;
  return asked_at + RENEW_MS;
}

/** Whether it is asked for while the run is awake: what is only renewed, a little early, so that one alarm does for all. */
export function isDue(lease: LeaseState, need: Need, now: number): boolean {
  const at = askAt(lease, need, now);
  if (at === null) return false;
  const renewed = at === lease.asked_at + RENEW_MS;
  return at <= now + (renewed ? RENEW_EARLY_MS : 0);
}

/** When paced dispatch goes on; null when it does not wait for the bucket. */
export function paceAt(lease: LeaseState, { running, more }: Need, now: number): number | null {
  const { grant } = lease;
  if (!more || !grant?.rate || grant.permits <= running || grant.lease_until <= now) {
    return null;
  }
  const tokens = refill(lease, now);
  if (tokens >= callsEach(lease)) return null;
  const block = Math.max(callsEach(lease), (grant.rate * BLOCK_MS) / MINUTE_MS);
  return now + Math.ceil(((block - tokens) * MINUTE_MS) / grant.rate);
}

/** Before the ask leaves: until the grant is here it dispatches no more than it tells of, and a kill loses no ask. */
export function beginAsk(lease: LeaseState, need: Need, now: number): LeaseState {
  const grant = lease.grant && {
    ...lease.grant,
    permits: Math.min(lease.grant.permits, need.running),
  };
  const held_until = isOver(need) ? heldUntil(lease) : now + LEASE_MS;
  const misses = lease.misses + 1;
  return { ...lease, grant, told: need, asked_at: now, misses, held_until, changed: false, outcomes: NO_OUTCOMES };
}

/** A run that has left holds nothing. */
export function takeGrant(lease: LeaseState, grant: Grant, now: number): LeaseState {
  const left = isOver(lease.told);
  return {
    ...lease,
    grant: left ? null : grant,
    held_until: left ? 0 : grant.lease_until,
    misses: 0,
    tokens: refill(lease, now),
    tokens_at: now,
  };
}

/** The ask failed: what it told is to be told again, before what came since. */
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
      ...told(addLatencies(lost.latencies, outcomes.latencies)),
    },
  };
}

export function afterDispatch(lease: LeaseState, count: number, now: number): LeaseState {
  if (lease.grant?.rate == null) return lease;
  const tokens = refill(lease, now) - count * callsEach(lease);
  return { ...lease, tokens, tokens_at: now };
}

/** A rollout's end: what its calls were in truth, and what it met. */
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

/** A run that is done with it. */
export function isOver({ running, wants, usual = 0 }: Need): boolean {
  return running === 0 && wants === 0 && usual === 0;
}

/** Why a run with rollouts left to dispatch waits; null when it does not, or only for its own. */
export function leaseFlow(lease: LeaseState, running: number, now: number): RunView["flow"] {
  const { grant } = lease;
  if (grant === null) return null;
  const paced = grant.rate !== null && refill(lease, now) < callsEach(lease);
  if (grant.flow !== null || !paced || grant.permits <= running) return grant.flow;
  return {
    state: "rate_limited",
    reason: `the endpoint's rpm limit gives this run ${grant.rate} requests a minute`,
  };
}

function told(latencies: Latencies | undefined): Pick<Outcomes, "latencies"> {
  return latencies === undefined ? {} : { latencies };
}

function countMet(before: Outcomes, met: Met, now: number): Outcomes {
  const { failure, error, turns, calls, limited = 0 } = met;
  const past = now - before.counted_from >= SQUEEZE_STEP_MS;
  const from = past ? { ...before, calls: 0, limited: 0, counted_from: now } : before;
  const times = told(addLatencies(before.latencies, met.latencies));
  const counted = { ...from, ...times, calls: from.calls + calls, limited: from.limited + limited };
  // What another try would not mend says nothing about the endpoint's health: it has answered.
  const failed = (failure === "provider" || failure === "timeout") && error?.retryable === true;
  if (failed) return { ...counted, streak: before.streak + 1, error: error.message };
  return turns === 0 ? counted : { ...counted, ok_at: now, streak: 0, error: null };
}

function heldUntil({ grant, held_until = 0 }: LeaseState): number {
  return Math.max(held_until, grant?.lease_until ?? 0);
}

function isNews({ told, changed, outcomes }: LeaseState, grant: Grant, need: Need): boolean {
  const { running, wants, more } = need;
  const { permits } = grant;
  const holds = Math.max(told.running, permits);
  const needs = Math.max(running, Math.min(permits, wants));
  return (
    changed ||
    wants > told.wants ||
    isCrowded(outcomes) ||
    outcomes.streak >= STREAK_TO_TELL ||
    streakOf(grant, outcomes) >= FAILURES_TO_OPEN ||
    (grant.watched && outcomes.ok_at !== null) ||
    (grant.shared && needs < holds) ||
    (grant.rate !== null && more !== told.more)
  );
}

/** Failures in a row: those the endpoint knew of, and those since. */
function streakOf({ streak }: Grant, { ok_at, streak: since }: Outcomes): number {
  return ok_at === null ? streak + since : since;
}

/** Calls a rollout makes, by those that ended. */
function callsEach({ ended, calls }: LeaseState): number {
  return ended === 0 ? 1 : Math.max(1, calls / ended);
}

function refill(lease: LeaseState, now: number): number {
  const rate = lease.grant?.rate ?? 0;
  const most = Math.max(callsEach(lease), (rate * BURST_MS) / MINUTE_MS);
  const since = Math.max(0, now - lease.tokens_at);
  return Math.min(most, lease.tokens + (rate * since) / MINUTE_MS);
}

/** The name under which the judges of a run ask. */
export function judgesOf(runId: string): string {
  return `${runId}${JUDGES}`;
}

/** The run that asked, for itself or for its judges. */
export function runOf(asker: string): string {
  return asker.endsWith(JUDGES) ? asker.slice(0, -JUDGES.length) : asker;
}
