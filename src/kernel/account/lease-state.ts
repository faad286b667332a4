/**
 * Decides what the runs of an organisation may have at once: rollouts, messages in each kind of shared queue, and
 * scoring groups whose judges are called (each occupies a consumer for as long as a judge takes). Pure; `object.ts`
 * stores the state and notifies runs.
 *
 * Invariants. The leases of all runs never exceed the organisation's limits, except for what ran before one was
 * lowered. A run holds what it was granted, or what it reports if that is more; no other run gets it until the run
 * reports otherwise or its lease ends. Shares are equal between runs. While the usual needs of all runs fit, each run
 * keeps its own and returns nothing; else each requests what it needs at the moment.
 */

import { LEASE_MS } from "../endpoint/lease-state.ts";
import { isOver } from "../endpoint/run-lease.ts";
import { fairShares, freeOf, type Holding, outOfShare } from "../kit/fair-shares.ts";
import type { ShareAsk, ShareGrants } from "../messages/account-wire.ts";
import type { Grant, Need } from "../messages/endpoint-wire.ts";

const POOLS = ["rollouts", "messages", "judgements"] as const;
type Pool = (typeof POOLS)[number];

/** Infinity: no limit. */
export type ShareLimits = Readonly<Record<Pool, number>>;

interface Held {
  readonly running: number;
  readonly wants: number;
  readonly usual: number;
  readonly permits: number;
  /** True if it was notified that others lack what it does not need. */
  readonly shared: boolean;
}

/** One run. */
export interface Sharer {
  readonly project_id: string;
  readonly held: Readonly<Record<Pool, Held>>;
  readonly lease_until: number;
  /** When it was last notified to ask again; null once it has. */
  readonly told_at: number | null;
}

export interface ShareState {
  readonly limits: ShareLimits;
  readonly runs: Readonly<Record<string, Sharer>>;
}

/** A run that was notified and has not asked is notified again after this time. */
const TELL_AGAIN_MS = 10_000;

/** Stores what a run reports and grants the free part of its shares. A run that needs nothing more is removed. */
export function askShares(
  before: ShareState,
  asked: ShareAsk,
  now: number,
): { state: ShareState; grants: ShareGrants } {
  const { run_id, scope } = asked;
  const { [run_id]: _, ...runs } = dropExpiredRuns(before, now).runs;
  const others = { ...before, runs };
  const lease_until = now + LEASE_MS;
  const grants = {
    rollouts: grantOf(others, asked, "rollouts", lease_until),
    messages: grantOf(others, asked, "messages", lease_until),
    judgements: grantOf(others, asked, "judgements", lease_until),
  };
  if (POOLS.every((pool) => isOver(asked[pool]))) return { state: others, grants };
  const held = {
    rollouts: heldOf(asked.rollouts, grants.rollouts),
    messages: heldOf(asked.messages, grants.messages),
    judgements: heldOf(asked.judgements, grants.judgements),
  };
  const sharer = { project_id: scope.projectId, held, lease_until, told_at: null };
  return { state: { ...before, runs: { ...runs, [run_id]: sharer } }, grants };
}

/** Removes runs whose lease has expired. */
export function dropExpiredRuns(state: ShareState, now: number): ShareState {
  const runs = Object.entries(state.runs).filter(([, { lease_until }]) => lease_until > now);
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Runs that would get another grant if they asked now, and were not notified just before. */
export function runsToTell(state: ShareState, now: number): string[] {
  return unfair(state).filter((run_id) => tellAt(state.runs[run_id], now) <= now);
}

export function noteRunsTold(state: ShareState, run_ids: readonly string[], now: number): ShareState {
  const told = new Set(run_ids);
  const runs = Object.entries(state.runs).map(([run_id, run]): [string, Sharer] => {
    return [run_id, told.has(run_id) ? { ...run, told_at: now } : run];
  });
  return { ...state, runs: Object.fromEntries(runs) };
}

/** Epoch milliseconds; null for an organisation without runs. */
export function nextShareAlarm(state: ShareState, now: number): number | null {
  const leases = Object.values(state.runs).map(({ lease_until }) => lease_until);
  if (leases.length === 0) return null;
  const tells = unfair(state).map((run_id) => tellAt(state.runs[run_id], now));
  return Math.max(now, Math.min(...leases, ...tells));
}

function grantOf(others: ShareState, asked: ShareAsk, pool: Pool, lease_until: number): Grant {
  const limit = others.limits[pool];
  const need = asked[pool];
  const held = holdingsIn(others, pool);
  const share = fairShares([...held, { id: asked.run_id, group: "", wants: need.wants }], limit).get(asked.run_id) ?? 0;
  const permits = Math.min(share, freeOf(held, limit));
  return {
    permits,
    shared: isContended(others, pool, usualOf(need)),
    flow: permits < need.wants ? flowOf(pool, limit, permits) : null,
    lease_until,
    ...{ rate: null, watched: false, streak: 0 },
  };
}

/** Why a run has no more than it was granted. The text says that other runs exist, but not which. */
function flowOf(pool: Pool, limit: number, permits: number): Grant["flow"] {
  const state = "over_limit";
  if (pool === "messages") {
    return { state, reason: `waiting for a share of the organisation's ${limit} queued messages` };
  }
  if (pool === "judgements") {
    return { state, reason: `judges wait: the organisation's limit is ${limit} scoring groups at once` };
  }
  const others = permits < limit ? ", used by its other runs" : "";
  return { state, reason: `the organisation's limit is ${limit} rollouts at once${others}` };
}

/** Runs that hold more than their share, or less while some is free, or were not notified that others lack it. */
function unfair(state: ShareState): string[] {
  const found = POOLS.flatMap((pool) => {
    const out = outOfShare(holdingsIn(state, pool), state.limits[pool]);
    if (!isContended(state, pool)) return out;
    return [...out, ...Object.entries(state.runs).flatMap(([id, { held }]) => (held[pool].shared ? [] : [id]))];
  });
  return [...new Set(found)];
}

/** True if the usual needs of all runs exceed the limit. `more`: the usual need of a run that is about to join. */
function isContended({ limits, runs }: ShareState, pool: Pool, more?: number): boolean {
  const usual = Object.values(runs).map(({ held }) => held[pool].usual);
  if (more !== undefined) usual.push(more);
  return usual.length > 1 && usual.reduce((sum, one) => sum + one, 0) > limits[pool];
}

function holdingsIn({ runs }: ShareState, pool: Pool): Holding[] {
  return Object.entries(runs).map(([id, { held }]) => ({ id, group: "", ...held[pool] }));
}

function heldOf(need: Need, { permits, shared }: Grant): Held {
  const { running, wants } = need;
  return { running, wants, usual: usualOf(need), permits, shared };
}

function usualOf({ wants, usual = wants }: Need): number {
  return usual;
}

function tellAt(run: Sharer | undefined, now: number): number {
  const told_at = run?.told_at ?? null;
  return told_at === null ? now : told_at + TELL_AGAIN_MS;
}
