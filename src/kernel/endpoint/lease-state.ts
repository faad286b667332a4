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
import { fairQuotas, freeOf, type Holding, offQuota } from "../kit/fair-quotas.ts";
import type { GrantedLease, LeaseAsk } from "../messages/endpoint-wire.ts";
import { afterOutcomes, HEALTHY, type Health, nextStepAt, statusReasonOfHealth, windowOf } from "./health.ts";

/** The endpoint's own settings; null = no limit. */
export interface EndpointLimits {
  readonly max_concurrent: number | null;
  readonly rpm: number | null;
  /** Only for a fleet, which has a circuit breaker per replica: why no replica takes calls; null if some do. */
  readonly fleet?: { readonly down: string | null };
}

interface Registered {
  readonly org_id: string;
  readonly project_id: string;
  readonly running: number;
  readonly wants: number;
  readonly more: boolean;
  readonly permits: number;
  readonly rate: number | null;
  readonly lease_until: number;
  /** When it was last notified to ask again; null if it has asked since. */
  readonly told_at: number | null;
}

export interface EndpointState {
  readonly limits: EndpointLimits;
  readonly health: Health;
  readonly runs: Readonly<Record<string, Registered>>;
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
  return { limits, health: HEALTHY, runs: {} };
}

export function isIdle({ runs }: EndpointState): boolean {
  return Object.keys(runs).length === 0;
}

/** Stores what a run reports, and grants its share as far as it is free. A run that leaves is granted nothing. */
export function ask(
  before: EndpointState,
  asked: LeaseAsk,
  now: number,
): { state: EndpointState; grant: GrantedLease } {
  const { run_id, running, wants } = asked;
  const { [run_id]: _, ...others } = dropExpired(before, now).runs;
  const health = healthAfter(before, asked, others, now);
  const lease_until = now + LEASE_MS;
  const left = { ...before, health, runs: others };
  const entered = withRun(left, asked, { permits: 0, rate: null, lease_until });
  const limit = limitOf(left, now);
  const fairQuota = fairQuotas(holdingsOf(entered), limit).get(run_id) ?? 0;
  const quota = Math.min(fairQuota, freeOf(holdingsOf(left), limit));
  const rate = rateQuota(ratesOf(entered)?.get(run_id), before.limits.rpm, left);
  const grantedLease = {
    permits: quota,
    rate,
    lease_until,
    shared: Object.keys(others).length > 0 && limit < Number.POSITIVE_INFINITY,
    watched: health.outage !== null,
    streak: health.streak,
    flow: statusReasonFor(left, quota, asked, now),
  };
  const leaves = wants === 0 && running === 0;
  return { state: leaves ? left : withRun(left, asked, grantedLease), grant: grantedLease };
}

/** Removes runs whose lease has expired. */
export function dropExpired(state: EndpointState, now: number): EndpointState {
  const runs = Object.entries(state.runs).filter(([, { lease_until }]) => lease_until > now);
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Runs that would get another grant if they asked now, and were not notified in the last `NOTIFY_AGAIN_MS`. */
export function toNotify(state: EndpointState, now: number): string[] {
  return stale(state, now).filter((run_id) => notifyAt(state.runs[run_id], now) <= now);
}

export function noteNotified(state: EndpointState, run_ids: readonly string[], now: number): EndpointState {
  const runs = Object.entries(state.runs).map(([run_id, run]): [string, Registered] => {
    return [run_id, run_ids.includes(run_id) ? { ...run, told_at: now } : run];
  });
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Epoch milliseconds; null for an endpoint that no run uses. */
export function nextEndpointAlarm(state: EndpointState, now: number): number | null {
  if (isIdle(state)) return null;
  const runs = Object.values(state.runs);
  const due = runs.map(({ lease_until }) => lease_until);
  if (runs.some(({ more }) => more)) {
    const { outage } = state.health;
    if (outage !== null) due.push(outage.probe_at);
    due.push(nextStepAt(state.health, now) ?? Number.POSITIVE_INFINITY);
    if (hasNoReplica(state.limits)) due.push(now + LOOK_AGAIN_MS);
  }
  for (const run_id of stale(state, now)) due.push(notifyAt(state.runs[run_id], now));
  return Math.max(now, Math.min(...due));
}

/** Runs that hold more than their share, or hold less although some is free. */
function stale(state: EndpointState, now: number): string[] {
  const unfair = new Set(offQuota(holdingsOf(state), limitOf(state, now)));
  const rates = ratesOf(state);
  const { rpm } = state.limits;
  const spareRate = rpm !== null && rpm > ratesHeld(state);
  return Object.entries(state.runs).flatMap(([run_id, { rate }]) => {
    const pace = rates?.get(run_id) ?? null;
    const unpaced = (rate === null) !== (pace === null);
    const repaced = (rate ?? 0) > (pace ?? 0) || (spareRate && (rate ?? 0) < (pace ?? 0));
    return unfair.has(run_id) || unpaced || repaced ? [run_id] : [];
  });
}

function notifyAt(run: Registered | undefined, now: number): number {
  const told_at = run?.told_at ?? null;
  return told_at === null ? now : told_at + NOTIFY_AGAIN_MS;
}

function holdingsOf({ runs }: EndpointState): Holding[] {
  return Object.entries(runs).map(([id, { org_id: group, running, wants, permits: quota }]) => {
    return { id, group, running, wants, permits: quota };
  });
}

/** The calls per minute of each run; null without a limit. */
function ratesOf({ runs, limits: { rpm } }: EndpointState): Map<string, number> | null {
  if (rpm === null) return null;
  const claims = Object.entries(runs).map(([id, { org_id: group, more }]) => ({ id, group, wants: more ? rpm : 0 }));
  return fairQuotas(claims, rpm);
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

function rateQuota(fairQuota: number | undefined, rpm: number | null, others: EndpointState): number | null {
  return rpm === null ? null : Math.min(fairQuota ?? 0, Math.max(0, rpm - ratesHeld(others)));
}

function ratesHeld({ runs }: EndpointState): number {
  return Object.values(runs).reduce((sum, { rate }) => sum + (rate ?? 0), 0);
}

function healthAfter(
  { health, limits }: EndpointState,
  { outcomes, model, running }: LeaseAsk,
  others: EndpointState["runs"],
  now: number,
): Health {
  // The fleet itself handles the failures of a single replica.
  const reported = limits.fleet === undefined ? outcomes : { ...outcomes, streak: 0, ok_at: now };
  const elsewhere = Object.values(others).reduce((sum, run) => sum + run.running, 0);
  return afterOutcomes(health, reported, { model, running: running + elsewhere, now });
}

function withRun(
  state: EndpointState,
  { run_id, scope, running, wants, more }: LeaseAsk,
  { permits: quota, rate, lease_until }: Pick<GrantedLease, "permits" | "rate" | "lease_until">,
): EndpointState {
  const { orgId: org_id, projectId: project_id } = scope;
  const standing = { org_id, project_id, running, wants, more, permits: quota, rate, lease_until };
  return { ...state, runs: { ...state.runs, [run_id]: { ...standing, told_at: null } } };
}

/** Why the run was granted less than it wants; null if it has all it needs. */
function statusReasonFor(
  state: EndpointState,
  quota: number,
  { wants }: LeaseAsk,
  now: number,
): RunView["status_reason"] {
  if (quota >= wants) return null;
  const down = state.limits.fleet?.down ?? null;
  if (down !== null) return { state: "endpoint_down", reason: down };
  const health = statusReasonOfHealth(state.health, now);
  if (health !== null) return health;
  const what = state.limits.fleet === undefined ? "endpoint" : "fleet";
  const shared = `max_concurrent of its ${what} is ${state.limits.max_concurrent}, shared by ${Object.keys(state.runs).length + 1} runs`;
  return { state: quota === 0 ? "rate_limited" : "active", reason: shared };
}
