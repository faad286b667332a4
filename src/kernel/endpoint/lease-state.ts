/**
 * Decides how many rollouts each run may have on one endpoint, and how many calls per minute. Pure; `object.ts` stores
 * the state, probes, and notifies runs.
 *
 * Invariants. The leases of all runs never exceed the endpoint's `max_concurrent`, except for rollouts that ran before
 * it was lowered. A run holds as many as it was granted, or as many as it reports as running if that is more. No other
 * run gets these until the run reports fewer or its lease ends. Grants are blocks: if a rollout ends, the run's next
 * one can start without a request.
 */
import type { RunView } from "../../contract/run.ts";
import type { GrantedLease, LeaseAsk } from "../messages/endpoint-wire.ts";
import { afterOutcomes, HEALTHY, type Health, nextStepAt, statusReasonOfHealth, windowOf } from "./health.ts";
import { type LeaseRun, LeaseRuns } from "./lease-runs.ts";

/** The endpoint's own settings; null = no limit. */
export interface EndpointLimits {
  readonly max_concurrent: number | null;
  readonly rpm: number | null;
  /** Only for a fleet, which has a circuit breaker per replica: why no replica takes calls; null if some do. */
  readonly fleet?: { readonly down: string | null };
}

export interface EndpointState {
  readonly limits: EndpointLimits;
  readonly health: Health;
  readonly runs: LeaseRuns;
}

/** A run renews at least this often; a lease outlives two lost requests. */
export const RENEW_MS = 5 * 60_000;
export const LEASE_MS = 15 * 60_000;
/** How long the settings of an endpoint, and the state of a fleet's replicas, are cached. */
const LIMITS_KEPT_MS = 5 * 60_000;
const FLEET_KEPT_MS = 10_000;
const DOWN_KEPT_MS = 1000;
/** A run that was notified and has not asked is notified again after this time. */
const NOTIFY_AGAIN_MS = 10_000;

export function newEndpoint(limits: EndpointLimits): EndpointState {
  return { limits, health: HEALTHY, runs: LeaseRuns.of([]) };
}

export function isIdle({ runs }: EndpointState): boolean {
  return runs.size === 0;
}

/** Stores what a run reports, and grants its share as far as it is free. A run that leaves is granted nothing. */
export function ask(
  before: EndpointState,
  asked: LeaseAsk,
  now: number,
): { state: EndpointState; grant: GrantedLease } {
  const { run_id, scope, running, wants, more } = asked;
  const { runs } = dropExpired(before, now);
  const { rpm } = before.limits;
  const others = runs.sumsWithout(run_id);
  const present = { ...before, health: healthAfter(before, asked, others.running, now) };
  const claim = { org_id: scope.orgId, wants, more };
  const shares = runs.sharesWith(run_id, claim);
  const limit = limitOf(present, now);
  const quota = Math.min(shares.places(limit).get(run_id) ?? 0, Math.max(0, limit - others.held));
  const rate = rpm === null ? null : Math.min(shares.rates(rpm).get(run_id) ?? 0, Math.max(0, rpm - others.rate));
  const lease_until = now + LEASE_MS;
  const grantedLease = {
    permits: quota,
    rate,
    lease_until,
    shared: others.runs > 0 && limit < Number.POSITIVE_INFINITY,
    watched: present.health.outage !== null,
    streak: present.health.streak,
    flow: statusReasonFor(present, { quota, wants, runs: others.runs + 1 }, now),
  };
  if (wants === 0 && running === 0) return { state: { ...present, runs: runs.without([run_id]) }, grant: grantedLease };
  const run = { ...claim, project_id: scope.projectId, running, permits: quota, rate, lease_until, told_at: null };
  return { state: { ...present, runs: runs.with(run_id, run, shares) }, grant: grantedLease };
}

/** Removes runs whose lease has expired. */
export function dropExpired(state: EndpointState, now: number): EndpointState {
  const expired: string[] = [];
  for (const [run_id, { lease_until }] of state.runs) if (lease_until <= now) expired.push(run_id);
  return expired.length === 0 ? state : { ...state, runs: state.runs.without(expired) };
}

/** Runs that would get another grant if they asked now, and were not notified in the last `NOTIFY_AGAIN_MS`. */
export function toNotify(state: EndpointState, now: number): string[] {
  return stale(state, now).filter((run_id) => notifyAt(state.runs.get(run_id), now) <= now);
}

export function noteNotified(state: EndpointState, run_ids: readonly string[], now: number): EndpointState {
  return { ...state, runs: state.runs.withNotified(run_ids, now) };
}

/** Epoch milliseconds; null for an endpoint that no run uses. */
export function nextEndpointAlarm(state: EndpointState, now: number): number | null {
  const { runs, health, limits } = state;
  if (isIdle(state)) return null;
  let due = Number.POSITIVE_INFINITY;
  for (const [, { lease_until }] of runs) due = Math.min(due, lease_until);
  if (runs.sums.more > 0) {
    if (health.outage !== null) due = Math.min(due, health.outage.probe_at);
    due = Math.min(due, nextStepAt(health, now) ?? Number.POSITIVE_INFINITY);
    if (hasNoReplica(limits)) due = Math.min(due, now + LOOK_AGAIN_MS);
  }
  for (const run_id of stale(state, now)) due = Math.min(due, notifyAt(runs.get(run_id), now));
  return Math.max(now, due);
}

/** Runs that hold more than their share, or hold less although some is free. */
function stale(state: EndpointState, now: number): string[] {
  const { runs, limits } = state;
  const { rpm } = limits;
  const limit = limitOf(state, now);
  const places = runs.shares.places(limit);
  const rates = rpm === null ? null : runs.shares.rates(rpm);
  const isFree = limit > runs.sums.held;
  const isRateFree = rpm !== null && rpm > runs.sums.rate;
  const found: string[] = [];
  for (const [run_id, { permits: quota, rate }] of runs) {
    const isUnpaced = (rate === null) !== (rates === null);
    const isRepaced = isOff(rate ?? 0, rates?.get(run_id) ?? 0, isRateFree);
    if (isUnpaced || isRepaced || isOff(quota, places.get(run_id) ?? 0, isFree)) found.push(run_id);
  }
  return found;
}

function isOff(granted: number, share: number, isFree: boolean): boolean {
  return granted > share || (isFree && granted < share);
}

function notifyAt(run: LeaseRun | undefined, now: number): number {
  const told_at = run?.told_at ?? null;
  return told_at === null ? now : told_at + NOTIFY_AGAIN_MS;
}

/** How often a fleet is asked while no replica takes calls. The fleet reports itself when one does again. */
const LOOK_AGAIN_MS = 20_000;

/** True if its settings, read `age` milliseconds ago, must be read again. */
export function isOutdated({ fleet }: EndpointLimits, age: number): boolean {
  if (fleet === undefined) return age >= LIMITS_KEPT_MS;
  return age >= (fleet.down === null ? FLEET_KEPT_MS : DOWN_KEPT_MS);
}

/** Maximum of concurrent rollouts: the endpoint's own limit and the present window; 0 while it is down. */
function limitOf({ limits, health }: EndpointState, now: number): number {
  if (health.outage !== null || hasNoReplica(limits)) return 0;
  return Math.min(limits.max_concurrent ?? Number.POSITIVE_INFINITY, windowOf(health, now));
}

function hasNoReplica({ fleet }: EndpointLimits): boolean {
  return fleet !== undefined && fleet.down !== null;
}

function healthAfter(
  { health, limits }: EndpointState,
  { outcomes, model, running }: LeaseAsk,
  elsewhere: number,
  now: number,
): Health {
  // The fleet itself handles the failures of a single replica.
  const reported = limits.fleet === undefined ? outcomes : { ...outcomes, streak: 0, ok_at: now };
  return afterOutcomes(health, reported, { model, running: running + elsewhere, now });
}

/** Why the run was granted less than it wants; null if it has all it needs. */
function statusReasonFor(
  state: EndpointState,
  { quota, wants, runs }: { readonly quota: number; readonly wants: number; readonly runs: number },
  now: number,
): RunView["status_reason"] {
  if (quota >= wants) return null;
  const down = state.limits.fleet?.down ?? null;
  if (down !== null) return { state: "endpoint_down", reason: down };
  const health = statusReasonOfHealth(state.health, now);
  if (health !== null) return health;
  const what = state.limits.fleet === undefined ? "endpoint" : "fleet";
  const shared = `max_concurrent of its ${what} is ${state.limits.max_concurrent}, shared by ${runs} runs`;
  return { state: quota === 0 ? "rate_limited" : "active", reason: shared };
}
