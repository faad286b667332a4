/**
 * Decides whether failed calls mean that their endpoint is down. Pure, and in memory only: after a restart the next
 * failed calls report again.
 *
 * Invariants. Rollouts report failed calls but not answered ones. So failures alone prove nothing: an endpoint that
 * fails one call in three must not count as down. `ROLLOUTS_TO_SUSPECT` different rollouts cause a probe.
 * `PROBES_TO_FIND` probes in a row with a fault, or one without any answer, find the endpoint down. An answered probe
 * clears the suspicion.
 */

import type { FailedTry } from "../messages/endpoint-wire.ts";
import { FAILURES_TO_OPEN } from "./health.ts";

export interface Suspicion {
  /** Rollouts whose last call failed, and when each reported it. */
  readonly failing: ReadonlyMap<string, number>;
  /** Until then reports are ignored: a probe was just answered. */
  readonly well_until: number;
  /** When the next probe is due; null while there is no reason for one. */
  readonly probe_at: number | null;
  /** Probes with a fault, in a row. */
  readonly faults: number;
  /** The model that the probe calls. */
  readonly model: string;
}

export const UNSUSPECTED: Suspicion = {
  failing: new Map(),
  well_until: 0,
  probe_at: null,
  faults: 0,
  model: "",
};

/** The same number as opens the circuit by ended rollouts: fewer just fail. */
const ROLLOUTS_TO_SUSPECT = FAILURES_TO_OPEN;
const PROBES_TO_FIND = 3;
const FIRST_PAUSE_MS = 500;
/** Older reports are ignored. */
const REPORTED_MS = 60_000;
/** Less than the retries of a call take. */
const TRUSTED_MS = 1000;

/** A call of this rollout failed, and is about to be retried. */
export function suspect(before: Suspicion, { rollout_id, model, limited }: FailedTry, now: number): Suspicion {
  if (limited || before.probe_at !== null || now < before.well_until) return before;
  const recent = [...before.failing].filter(([id, at]) => id !== rollout_id && now - at < REPORTED_MS);
  const failing = new Map([...recent, [rollout_id, now]]);
  const probe_at = failing.size < ROLLOUTS_TO_SUSPECT ? null : now;
  return { ...before, failing, probe_at, model };
}

/** A rollout got an answer at this time: earlier failures prove nothing. */
export function clear(before: Suspicion, answeredAt: number): Suspicion {
  const failing = new Map([...before.failing].filter(([, at]) => at > answeredAt));
  return failing.size === before.failing.size ? before : { ...before, failing };
}

/** What the probe met. */
export interface ProbeFault {
  readonly error: string;
  /** `silent`: no answer in time. `limited`: 429. `unasked`: it could not be sent. */
  readonly kind: "refused" | "silent" | "limited" | "unasked";
}

/** Applies the result of a probe (null: it was answered). `down`: the endpoint is found down. */
export function settleProbe(
  before: Suspicion,
  fault: ProbeFault | null,
  now: number,
): { readonly suspicion: Suspicion; readonly down: boolean } {
  if (fault === null || fault.kind === "limited" || fault.kind === "unasked") {
    return { suspicion: { ...UNSUSPECTED, well_until: now + TRUSTED_MS }, down: false };
  }
  const faults = before.faults + 1;
  if (fault.kind === "silent" || faults >= PROBES_TO_FIND) return { suspicion: UNSUSPECTED, down: true };
  const probe_at = now + FIRST_PAUSE_MS * 2 ** before.faults;
  return { suspicion: { ...before, faults, probe_at }, down: false };
}
