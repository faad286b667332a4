/**
 * The health of an endpoint, computed from the outcomes of rollouts. Pure, so that every case can be tested.
 *
 * There are two reactions to problems. Circuit breaker: it opens after `FAILURES_TO_OPEN` rollouts in a row failed at
 * the endpoint, retries included, or when probes confirm failed calls (suspicion.ts). Then nothing is dispatched until
 * a probe is answered. The first probe is 5 s after the last failure, each later one after twice the time, up to 20 s;
 * an outage that soon follows another continues with its interval. Window: if a tenth of the calls get a 429, the
 * number of concurrent rollouts is halved, down to an eighth, and then raised by one step every 10 s.
 */
import type { RunView } from "../../contract/run.ts";
import type { Outcomes } from "../messages/endpoint-wire.ts";

export const NO_OUTCOMES: Outcomes = {
  ok_at: null,
  streak: 0,
  calls: 0,
  limited: 0,
  counted_from: 0,
  error: null,
};

export interface Outage {
  readonly since: number;
  readonly probe_at: number;
  /** The number of probes that found it down, including those of a recent earlier outage. */
  readonly level: number;
  readonly state: "endpoint_down" | "rate_limited";
  readonly reason: string;
  /** The model that the probe calls. */
  readonly model: string;
}

/** A temporary limit on concurrent rollouts. */
export interface Squeeze {
  readonly limit: number;
  /** The number before the first cut: when the limit reaches it, the squeeze ends. */
  readonly full: number;
  readonly cut_at: number;
}

export interface Health {
  readonly streak: number;
  readonly outage: Outage | null;
  readonly squeeze: Squeeze | null;
  /** The previous outage, needed if another follows soon. */
  readonly last: { readonly ended_at: number; readonly level: number } | null;
}

export const HEALTHY: Health = { streak: 0, outage: null, squeeze: null, last: null };

export const FAILURES_TO_OPEN = 10;
const FIRST_PROBE_MS = 5000;
/** Rollouts that wait for the endpoint continue at most this long after it is back. */
const LONGEST_PROBE_MS = 20_000;
/** An outage that begins this soon after another counts as the same one. */
const SOON_MS = 5 * 60_000;
/** Time between two cuts, and between two steps up: a change must have an effect before the next decision. */
export const SQUEEZE_STEP_MS = 10_000;
/** Fewer 429 replies, or a smaller part of the calls, are taken as chance, not as overload. */
const LEAST_LIMITED = 3;
const LEAST_LIMITED_SHARE = 0.1;
/** The lowest window, however many 429s there are: if they do not depend on the load, a lower one would not help. */
const LEAST_WINDOW_SHARE = 1 / 8;
/** The number of steps from half to full. */
const SQUEEZE_STEPS = 10;

export function afterOutcomes(
  health: Health,
  outcomes: Outcomes,
  { model, running, now }: { model: string; running: number; now: number },
): Health {
  const squeezed = isCrowded(outcomes) ? squeeze(health, running, now) : health;
  const { outage } = health;
  if (outage !== null) return (outcomes.ok_at ?? 0) > outage.since ? endOutage(squeezed, now) : squeezed;
  const streak = outcomes.streak + (outcomes.ok_at === null ? health.streak : 0);
  if (streak < FAILURES_TO_OPEN) return streak === squeezed.streak ? squeezed : { ...squeezed, streak };
  const said = outcomes.error ?? "no answer";
  const reason = `${streak} rollouts in a row failed at the endpoint: ${said}`;
  const state = outcomes.limited > 0 ? "rate_limited" : "endpoint_down";
  return openCircuit(squeezed, { state, reason, model }, now);
}

/** Opens the circuit: calls of many rollouts failed, and so did the probes that followed. */
export function foundDown(health: Health, { model, error }: { model: string; error: string }, now: number): Health {
  if (health.outage !== null) return health;
  return openCircuit(health, { state: "endpoint_down", reason: unanswered(error), model }, now);
}

/** Applies the result of a probe. `error`: what failed; null if it was answered. */
export function takeProbe(health: Health, error: string | null, now: number): Health {
  const { outage } = health;
  if (outage === null) return health;
  if (error === null) return endOutage(health, now);
  const level = outage.level + 1;
  const reason = unanswered(error);
  return { ...health, outage: { ...outage, level, reason, probe_at: now + probeWait(level) } };
}

/** The address or key was changed: results of the old one do not count. */
export function renew(health: Health, now: number): Health {
  const { outage } = health;
  return { ...HEALTHY, outage: outage === null ? null : { ...outage, level: 0, probe_at: now } };
}

/** The number of concurrent rollouts that the endpoint seems to support; infinite if there was no problem. */
export function windowOf({ squeeze: now_ }: Health, now: number): number {
  if (now_ === null) return Number.POSITIVE_INFINITY;
  const { limit, full, cut_at } = now_;
  const steps = Math.floor((now - cut_at) / SQUEEZE_STEP_MS);
  const risen = limit + steps * Math.ceil(full / (2 * SQUEEZE_STEPS));
  return risen >= full ? Number.POSITIVE_INFINITY : risen;
}

/** When the window is next raised by one step; null if it is fully open. */
export function nextStepAt(health: Health, now: number): number | null {
  if (health.squeeze === null || windowOf(health, now) === Number.POSITIVE_INFINITY) return null;
  const { cut_at } = health.squeeze;
  return cut_at + SQUEEZE_STEP_MS * (Math.floor((now - cut_at) / SQUEEZE_STEP_MS) + 1);
}

/** Why a run waits; null if the endpoint is healthy. */
export function statusReasonOfHealth(health: Health, now: number): RunView["status_reason"] {
  const { outage } = health;
  if (outage !== null) return { state: outage.state, reason: outage.reason };
  const window = windowOf(health, now);
  if (window === Number.POSITIVE_INFINITY) return null;
  return {
    state: "rate_limited",
    reason: `the endpoint replies 429: the run is limited to ${window} rollouts at once`,
  };
}

/** True if the 429 replies indicate too many concurrent calls. */
export function isCrowded({ calls, limited }: Outcomes): boolean {
  return limited >= LEAST_LIMITED && limited >= calls * LEAST_LIMITED_SHARE;
}

function squeeze(health: Health, running: number, now: number): Health {
  const before = windowOf(health, now);
  const since = now - (health.squeeze?.cut_at ?? Number.NEGATIVE_INFINITY);
  if (since < SQUEEZE_STEP_MS) return health;
  const from = Math.min(before, running);
  const full = Math.max(from, since < SOON_MS ? (health.squeeze?.full ?? 0) : 0);
  const limit = Math.max(1, Math.ceil(full * LEAST_WINDOW_SHARE), Math.floor(from / 2));
  return { ...health, squeeze: { limit, full, cut_at: now } };
}

function openCircuit(health: Health, why: Pick<Outage, "state" | "reason" | "model">, now: number): Health {
  const { last } = health;
  const level = last !== null && now - last.ended_at < SOON_MS ? last.level : 0;
  const outage = { ...why, since: now, probe_at: now + probeWait(level), level };
  return { ...health, streak: 0, outage };
}

function unanswered(error: string): string {
  return `it does not answer: ${error}`;
}

function endOutage(health: Health, now: number): Health {
  const level = health.outage?.level ?? 0;
  return { ...health, streak: 0, outage: null, last: { ended_at: now, level: level + 1 } };
}

function probeWait(level: number): number {
  return Math.min(LONGEST_PROBE_MS, FIRST_PROBE_MS * 2 ** Math.min(level, 10));
}
