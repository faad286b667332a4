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
import type { Grant, Outcomes, PermitAsk } from "../contract/endpoint-wire.ts";
import type { RolloutReport } from "../contract/wire.ts";
import { logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";
import { FAILURES_TO_OPEN, isCrowded, NO_OUTCOMES, SQUEEZE_STEP_MS } from "./health.ts";
import { RENEW_MS } from "./ledger.ts";

/** Where the gate is kept. */
export interface LeaseSlot {
  readonly read: () => LeaseState;
  readonly write: (gate: LeaseState) => void;
}

/** Behind a run's id where its judges ask: an endpoint that is the policy's too knows the run twice. */
const JUDGES = "/judges";

/** Who asks which endpoint. */
export type Asker = Pick<PermitAsk, "scope" | "endpoint_id" | "run_id" | "model">;

/** What a rollout, or a judge that was asked, met at its endpoint. */
export interface Met extends Pick<RolloutReport, "failure" | "turns" | "calls" | "limited"> {
  readonly error: Pick<SerializedError, "message" | "retryable"> | null;
}

/** What a run is about to ask for. */
export type Need = Pick<PermitAsk, "running" | "wants" | "more">;

export interface LeaseState {
  readonly grant: Grant | null;
  readonly told: Need;
  readonly asked_at: number;
  /** Asks that failed, in a row. */
  readonly misses: number;
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
const LONGEST_WAIT_MS = 60_000;
/** So many failures in a row are told at once; fewer wait for the next ask. */
const STREAK_TO_TELL = 3;
const MINUTE_MS = 60_000;
/** What may gather while nothing is dispatched: calls of so long. */
const BURST_MS = 6000;
/** Paced dispatch comes in blocks, an alarm for each. */
const BLOCK_MS = 1000;

/** Rollouts the endpoint lets it dispatch now. */
export function leaseRoom(gate: LeaseState, running: number, now: number): number {
  const { grant } = gate;
  if (grant === null || grant.lease_until <= now) return 0;
  // The circuit is about to open: what would be dispatched before the endpoint has heard of it would only fail.
  if (streakOf(grant, gate.outcomes) >= FAILURES_TO_OPEN) return 0;
  const paced = grant.rate === null ? grant.permits : Math.floor(refill(gate, now) / callsEach(gate));
  return Math.max(0, Math.min(grant.permits - running, paced));
}

/** Epoch milliseconds at which the endpoint is to be asked; null for a run that is done with it. */
export function askAt(gate: LeaseState, need: Need, now: number): number | null {
  const { grant, asked_at, misses } = gate;
  const over = need.wants === 0 && need.running === 0;
  if (over && (grant === null || grant.lease_until <= now)) return null;
  const wait = Math.min(LONGEST_WAIT_MS, ASK_EVERY_MS * 2 ** misses);
  if (over || misses > 0 || grant === null || isNews(gate, grant, need)) return asked_at + wait;
  return asked_at + RENEW_MS;
}

/** When paced dispatch goes on; null when it does not wait for the bucket. */
export function paceAt(gate: LeaseState, { running, more }: Need, now: number): number | null {
  const { grant } = gate;
  if (!more || !grant?.rate || grant.permits <= running || grant.lease_until <= now) {
    return null;
  }
  const tokens = refill(gate, now);
  if (tokens >= callsEach(gate)) return null;
  const block = Math.max(callsEach(gate), (grant.rate * BLOCK_MS) / MINUTE_MS);
  return now + Math.ceil(((block - tokens) * MINUTE_MS) / grant.rate);
}

/** Before the ask leaves: until the grant is here it dispatches no more than it tells of. */
export function beginAsk(gate: LeaseState, need: Need, now: number): LeaseState {
  const grant = gate.grant && {
    ...gate.grant,
    permits: Math.min(gate.grant.permits, need.running),
  };
  return { ...gate, grant, told: need, asked_at: now, changed: false, outcomes: NO_OUTCOMES };
}

/** A run that has left holds nothing. */
export function takeGrant(gate: LeaseState, grant: Grant, now: number): LeaseState {
  const { wants, running } = gate.told;
  const left = wants === 0 && running === 0;
  return {
    ...gate,
    grant: left ? null : grant,
    misses: 0,
    tokens: refill(gate, now),
    tokens_at: now,
  };
}

/** The ask failed: what it told is to be told again, before what came since. */
export function undoAsk(gate: LeaseState, lost: Outcomes): LeaseState {
  const { outcomes } = gate;
  const streak = outcomes.ok_at === null ? lost.streak + outcomes.streak : outcomes.streak;
  return {
    ...gate,
    misses: gate.misses + 1,
    outcomes: {
      ...outcomes,
      ok_at: outcomes.ok_at ?? lost.ok_at,
      streak,
      error: outcomes.error ?? lost.error,
    },
  };
}

export function afterDispatch(gate: LeaseState, count: number, now: number): LeaseState {
  if (gate.grant?.rate == null) return gate;
  const tokens = refill(gate, now) - count * callsEach(gate);
  return { ...gate, tokens, tokens_at: now };
}

/** A rollout's end: what its calls were in truth, and what it met. */
export function afterEnd(gate: LeaseState, report: Met, now: number): LeaseState {
  const paced = gate.grant?.rate != null;
  const tokens = paced ? refill(gate, now) + callsEach(gate) - report.calls : gate.tokens;
  return {
    ...gate,
    tokens,
    tokens_at: paced ? now : gate.tokens_at,
    ended: gate.ended + 1,
    calls: gate.calls + report.calls,
    outcomes: countMet(gate.outcomes, report, now),
  };
}

/** Why a run with rollouts left to dispatch waits; null when it does not, or only for its own. */
export function leaseFlow(gate: LeaseState, running: number, now: number): RunView["flow"] {
  const { grant } = gate;
  if (grant === null) return null;
  const paced = grant.rate !== null && refill(gate, now) < callsEach(gate);
  if (grant.flow !== null || !paced || grant.permits <= running) return grant.flow;
  return {
    state: "rate_limited",
    reason: `rpm of its endpoint leaves this run ${grant.rate} requests a minute`,
  };
}

function countMet(before: Outcomes, { failure, error, turns, calls, limited = 0 }: Met, now: number): Outcomes {
  const past = now - before.counted_from >= SQUEEZE_STEP_MS;
  const from = past ? { ...before, calls: 0, limited: 0, counted_from: now } : before;
  const counted = { ...from, calls: from.calls + calls, limited: from.limited + limited };
  // What another try would not mend says nothing of the endpoint's health: it has answered.
  const failed = (failure === "provider" || failure === "timeout") && error?.retryable === true;
  if (failed) return { ...counted, streak: before.streak + 1, error: error.message };
  return turns === 0 ? counted : { ...counted, ok_at: now, streak: 0, error: null };
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

function refill(gate: LeaseState, now: number): number {
  const rate = gate.grant?.rate ?? 0;
  const most = Math.max(callsEach(gate), (rate * BURST_MS) / MINUTE_MS);
  const since = Math.max(0, now - gate.tokens_at);
  return Math.min(most, gate.tokens + (rate * since) / MINUTE_MS);
}

/** Asks a run's endpoint for permits when that is due, and keeps what it grants. Never throws, one ask at a time. */
export function judgesOf(runId: string): string {
  return `${runId}${JUDGES}`;
}

/** The run that asked, for itself or for its judges. */
export function runOf(asker: string): string {
  return asker.endsWith(JUDGES) ? asker.slice(0, -JUDGES.length) : asker;
}

export class LeaseKeeper {
  readonly #env: Env;
  readonly #slot: LeaseSlot;
  readonly #now: () => number;
  #asking = false;

  constructor(env: Env, slot: LeaseSlot, now: () => number) {
    this.#env = env;
    this.#slot = slot;
    this.#now = now;
  }

  /** When the endpoint is next to be asked, or its bucket holds enough for a rollout; null when neither is awaited. */
  nextAt(need: Need): number | null {
    const gate = this.#slot.read();
    const now = this.#now();
    const ask = this.#asking ? null : askAt(gate, need, now);
    const due = [ask, paceAt(gate, need, now)].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** The endpoint would grant something else now. */
  changed(): void {
    this.#slot.write({ ...this.#slot.read(), changed: true });
  }

  async renew({ scope, endpoint_id, run_id, model }: Asker, need: Need): Promise<void> {
    const now = this.#now();
    const { read, write } = this.#slot;
    const at = askAt(read(), need, now);
    if (this.#asking || at === null || at > now) return;
    this.#asking = true;
    const { outcomes } = read();
    write(beginAsk(read(), need, now));
    try {
      const endpoint = endpointObject(this.#env, scope, endpoint_id);
      const grant = await endpoint.ask({ scope, endpoint_id, run_id, model, ...need, outcomes });
      write(takeGrant(read(), grant, this.#now()));
    } catch (thrown) {
      logError("endpoint does not answer", endpoint_id, thrown);
      write(undoAsk(read(), outcomes));
    } finally {
      this.#asking = false;
    }
  }
}
