/**
 * How an endpoint does, from what rollouts met there: pure, so that every case is a test.
 *
 * Two answers to trouble. A circuit: after `FAILURES_TO_OPEN` rollouts in a row that the endpoint failed, retries
 * included, or as soon as probes find what their calls say (suspicion.ts), nothing more is dispatched until a
 * probe is answered, 5 s after the last failure at first and then after twice as long each time up to 20 s; an outage
 * that follows another soon goes on where that one stopped. A window: when a tenth of the calls are answered with 429 the rollouts at once are halved, down to an eighth, and a
 * step is given back every 10 s.
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
  /** Probes that found it down, those of an outage shortly before included. */
  readonly level: number;
  readonly state: "endpoint_down" | "rate_limited";
  readonly reason: string;
  /** Who is asked by the probe. */
  readonly model: string;
}

/** Rollouts at once, fewer for a while. */
export interface Squeeze {
  readonly limit: number;
  /** How many there were when it was first cut: back there, the squeeze is over. */
  readonly full: number;
  readonly cut_at: number;
}

export interface Health {
  readonly streak: number;
  readonly outage: Outage | null;
  readonly squeeze: Squeeze | null;
  /** The outage before, for one that follows it soon. */
  readonly last: { readonly ended_at: number; readonly level: number } | null;
}

export const HEALTHY: Health = { streak: 0, outage: null, squeeze: null, last: null };

export const FAILURES_TO_OPEN = 10;
const FIRST_PROBE_MS = 5000;
/** What waits for the endpoint goes on this long after its return at the latest. */
const LONGEST_PROBE_MS = 20_000;
/** An outage that begins this soon after another is the same one. */
const SOON_MS = 5 * 60_000;
/** Between two cuts, and between two steps back: what was cut must show before it is judged. */
export const SQUEEZE_STEP_MS = 10_000;
/** Fewer replies of 429, or a smaller share of the calls, are chance and not the load. */
const LEAST_LIMITED = 3;
const LEAST_LIMITED_SHARE = 0.1;
/** However many there are: where they do not follow the load, less of it would not help. */
const LEAST_WINDOW_SHARE = 1 / 8;
/** Steps from half back to full. */
const SQUEEZE_STEPS = 10;

export function heard(
  health: Health,
  outcomes: Outcomes,
  { model, running, now }: { model: string; running: number; now: number },
): Health {
  const squeezed = isCrowded(outcomes) ? squeeze(health, running, now) : health;
  const { outage } = health;
  if (outage !== null) return (outcomes.ok_at ?? 0) > outage.since ? endOutage(squeezed, now) : squeezed;
  const streak = outcomes.streak + (outcomes.ok_at === null ? health.streak : 0);
  if (streak < FAILURES_TO_OPEN) return { ...squeezed, streak };
  const said = outcomes.error ?? "no answer";
  const reason = `${streak} rollouts in a row failed at the endpoint: ${said}`;
  const state = outcomes.limited > 0 ? "rate_limited" : "endpoint_down";
  return openCircuit(squeezed, { state, reason, model }, now);
}

/** Calls of many rollouts fail, and so did the probes that followed. */
export function foundDown(health: Health, { model, error }: { model: string; error: string }, now: number): Health {
  if (health.outage !== null) return health;
  return openCircuit(health, { state: "endpoint_down", reason: unanswered(error), model }, now);
}

/** After a probe. `error`: what it met; null when it was answered. */
export function takeProbe(health: Health, error: string | null, now: number): Health {
  const { outage } = health;
  if (outage === null) return health;
  if (error === null) return endOutage(health, now);
  const level = outage.level + 1;
  const reason = unanswered(error);
  return { ...health, outage: { ...outage, level, reason, probe_at: now + probeWait(level) } };
}

/** Another address or key: whatever was known of the old one says nothing. */
export function renew(health: Health, now: number): Health {
  const { outage } = health;
  return { ...HEALTHY, outage: outage === null ? null : { ...outage, level: 0, probe_at: now } };
}

/** Rollouts at once that the endpoint seems to bear; infinite when nothing is known against it. */
export function windowOf({ squeeze: now_ }: Health, now: number): number {
  if (now_ === null) return Number.POSITIVE_INFINITY;
  const { limit, full, cut_at } = now_;
  const steps = Math.floor((now - cut_at) / SQUEEZE_STEP_MS);
  const risen = limit + steps * Math.ceil(full / (2 * SQUEEZE_STEPS));
  return risen >= full ? Number.POSITIVE_INFINITY : risen;
}

/** When the window next opens a step; null when it is open. */
export function nextStepAt(health: Health, now: number): number | null {
  if (health.squeeze === null || windowOf(health, now) === Number.POSITIVE_INFINITY) return null;
  const { cut_at } = health.squeeze;
  return cut_at + SQUEEZE_STEP_MS * (Math.floor((now - cut_at) / SQUEEZE_STEP_MS) + 1);
}

/** Why a run waits, or null when the endpoint is well. */
export function flowOfHealth(health: Health, now: number): RunView["flow"] {
  const { outage } = health;
  if (outage !== null) return { state: outage.state, reason: outage.reason };
  const window = windowOf(health, now);
  if (window === Number.POSITIVE_INFINITY) return null;
  return {
    state: "rate_limited",
    reason: `the endpoint replies 429: the run is limited to ${window} rollouts at once`,
  };
}

/** Whether replies of 429 say that there is too much at once. */
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
