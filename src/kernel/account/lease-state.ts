/**
 * Decides what the runs of an organisation may have at once: rollouts, messages in each kind of shared queue, and
 * scoring groups whose judges are called (each occupies a consumer for as long as a judge takes). Pure; `leases.ts`
 * stores the state and notifies runs.
 *
 * Invariants. The leases of all runs never exceed the organisation's limits, except for work that was already running
 * when a limit was lowered. A run holds as many as it was granted, or as many as it reports if that is more. No other
 * run gets these until the run reports fewer or its lease ends. Shares are equal between runs. As long as the limit
 * covers the usual needs of all runs, each run keeps its usual need and returns nothing. Otherwise each run requests
 * only what it needs at the moment. While the deployment is draining, `limits.rollouts` is 0 and every grant says why.
 */

import { LEASE_MS } from "../endpoint/lease-state.ts";
import { isOver } from "../endpoint/run-lease.ts";
import { fairQuotas, freeOf, type Holding, offQuota } from "../kit/fair-quotas.ts";
import type { AccountLeaseAsk, GrantedLeases } from "../messages/account-wire.ts";
import type { GrantedLease, Need } from "../messages/endpoint-wire.ts";

const POOLS = ["rollouts", "messages", "judgements"] as const;
type Pool = (typeof POOLS)[number];

/** Infinity: no limit. */
export type AccountLimits = Readonly<Record<Pool, number>>;

interface Held {
  readonly running: number;
  readonly wants: number;
  readonly usual: number;
  readonly permits: number;
  /** True if its last grant said that other runs need what this run does not need. */
  readonly shared: boolean;
}

/** One run. */
export interface Leaseholder {
  readonly project_id: string;
  readonly held: Readonly<Record<Pool, Held>>;
  readonly lease_until: number;
  /** True if its last grant said that the deployment is draining. */
  readonly upgrading?: boolean;
  /** When it was last notified to ask again; null if it has asked since. */
  readonly told_at: number | null;
}

export interface AccountLeaseState {
  readonly limits: AccountLimits;
  /** The deployment is draining. */
  readonly upgrading?: boolean;
  readonly runs: Readonly<Record<string, Leaseholder>>;
}

/** A run that was notified and has not asked is notified again after this time. */
const NOTIFY_AGAIN_MS = 10_000;

/** Stores what a run reports, and grants its shares as far as they are free. Removes a run that needs nothing more. */
export function askLeases(
  before: AccountLeaseState,
  asked: AccountLeaseAsk,
  now: number,
): { state: AccountLeaseState; grants: GrantedLeases } {
  const { run_id, scope } = asked;
  const { [run_id]: _, ...runs } = dropExpiredRuns(before, now).runs;
  const others = { ...before, runs };
  const lease_until = now + LEASE_MS;
  const grantedLeases = {
    rollouts: grantedLeaseOf(others, asked, "rollouts", lease_until),
    messages: grantedLeaseOf(others, asked, "messages", lease_until),
    judgements: grantedLeaseOf(others, asked, "judgements", lease_until),
  };
  if (POOLS.every((pool) => isOver(asked[pool]))) return { state: others, grants: grantedLeases };
  const held = {
    rollouts: heldOf(asked.rollouts, grantedLeases.rollouts),
    messages: heldOf(asked.messages, grantedLeases.messages),
    judgements: heldOf(asked.judgements, grantedLeases.judgements),
  };
  const { upgrading = false } = before;
  const leaseholder = { project_id: scope.projectId, held, upgrading, lease_until, told_at: null };
  return { state: { ...before, runs: { ...runs, [run_id]: leaseholder } }, grants: grantedLeases };
}

/** Removes runs whose lease has expired. */
export function dropExpiredRuns(state: AccountLeaseState, now: number): AccountLeaseState {
  const runs = Object.entries(state.runs).filter(([, { lease_until }]) => lease_until > now);
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Runs that would get another grant if they asked now, and were not notified in the last `NOTIFY_AGAIN_MS`. */
export function runsToNotify(state: AccountLeaseState, now: number): string[] {
  return unfair(state).filter((run_id) => notifyAt(state.runs[run_id], now) <= now);
}

export function noteRunsNotified(state: AccountLeaseState, run_ids: readonly string[], now: number): AccountLeaseState {
  const notified = new Set(run_ids);
  const runs = Object.entries(state.runs).map(([run_id, run]): [string, Leaseholder] => {
    return [run_id, notified.has(run_id) ? { ...run, told_at: now } : run];
  });
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Epoch milliseconds; null for an organisation without runs. */
export function nextLeaseAlarm(state: AccountLeaseState, now: number): number | null {
  const leases = Object.values(state.runs).map(({ lease_until }) => lease_until);
  if (leases.length === 0) return null;
  const notifyTimes = unfair(state).map((run_id) => notifyAt(state.runs[run_id], now));
  return Math.max(now, Math.min(...leases, ...notifyTimes));
}

function grantedLeaseOf(
  others: AccountLeaseState,
  asked: AccountLeaseAsk,
  pool: Pool,
  lease_until: number,
): GrantedLease {
  const limit = others.limits[pool];
  const need = asked[pool];
  const held = holdingsIn(others, pool);
  const fairQuota =
    fairQuotas([...held, { id: asked.run_id, group: "", wants: need.wants }], limit).get(asked.run_id) ?? 0;
  const quota = Math.min(fairQuota, freeOf(held, limit));
  const { upgrading = false } = others;
  const upgrade = upgrading && pool === "rollouts" ? UPGRADING : null;
  return {
    permits: quota,
    shared: isContended(others, pool, usualOf(need)),
    flow: quota < need.wants ? (upgrade ?? statusReasonOf(pool, limit, quota)) : null,
    ...(upgrading && { upgrading }),
    lease_until,
    ...{ rate: null, watched: false, streak: 0 },
  };
}

export const UPGRADING = {
  state: "upgrading",
  reason: "the operator is upgrading the platform: rollouts start again afterwards",
} as const satisfies GrantedLease["flow"];

/** How many rollouts the runs may have at once by their leases. What runs beyond its lease is not counted. */
export function grantedRollouts({ runs }: AccountLeaseState): number {
  return Object.values(runs).reduce((sum, { held }) => sum + held.rollouts.permits, 0);
}

/** Why a run was granted less than it wants. The text says that other runs exist, but not which. */
function statusReasonOf(pool: Pool, limit: number, quota: number): GrantedLease["flow"] {
  const state = "over_limit";
  if (pool === "messages") {
    return { state, reason: `waiting for a part of the organisation's ${limit} queued messages` };
  }
  if (pool === "judgements") {
    return { state, reason: `judges wait: the organisation's limit is ${limit} scoring groups at once` };
  }
  const others = quota < limit ? ", used by its other runs" : "";
  return { state, reason: `the organisation's limit is ${limit} rollouts at once${others}` };
}

/**
 * Runs that hold more than their share, or hold less although some is free. If the usual needs exceed the limit: also
 * runs whose last grant did not say so. And runs whose last grant was from before a drain began or ended.
 */
function unfair(state: AccountLeaseState): string[] {
  const found = POOLS.flatMap((pool) => {
    const out = offQuota(holdingsIn(state, pool), state.limits[pool]);
    if (!isContended(state, pool)) return out;
    return [...out, ...Object.entries(state.runs).flatMap(([id, { held }]) => (held[pool].shared ? [] : [id]))];
  });
  const { upgrading = false, runs } = state;
  const before = Object.entries(runs).flatMap(([id, run]) => ((run.upgrading ?? false) === upgrading ? [] : [id]));
  return [...new Set([...found, ...before])];
}

/** True if the usual needs of all runs exceed the limit. `more`: the usual need of a run that is about to join. */
function isContended({ limits, runs }: AccountLeaseState, pool: Pool, more?: number): boolean {
  const usual = Object.values(runs).map(({ held }) => held[pool].usual);
  if (more !== undefined) usual.push(more);
  return usual.length > 1 && usual.reduce((sum, one) => sum + one, 0) > limits[pool];
}

function holdingsIn({ runs }: AccountLeaseState, pool: Pool): Holding[] {
  return Object.entries(runs).map(([id, { held }]) => ({ id, group: "", ...held[pool] }));
}

function heldOf(need: Need, { permits: quota, shared }: GrantedLease): Held {
  const { running, wants } = need;
  return { running, wants, usual: usualOf(need), permits: quota, shared };
}

function usualOf({ wants, usual = wants }: Need): number {
  return usual;
}

function notifyAt(run: Leaseholder | undefined, now: number): number {
  const told_at = run?.told_at ?? null;
  return told_at === null ? now : told_at + NOTIFY_AGAIN_MS;
}
