/**
 * Whether calls that fail mean that their endpoint is down: pure, and kept in memory only, since what is lost by a
 * restart is said again by the next calls that fail.
 *
 * Invariants. Rollouts say that a call of theirs failed, none says that one was answered: so many failures alone prove
 * nothing, and an endpoint that fails one call in three must not be taken for dead. `ROLLOUTS_TO_SUSPECT` different
 * rollouts call for a probe; `PROBES_TO_FIND` probes in a row that meet a fault, or one that gets no answer at all, find
 * it down. One that is answered clears it.
 */

import type { FailedTry } from "../messages/endpoint-wire.ts";
import { FAILURES_TO_OPEN } from "./health.ts";

export interface Suspicion {
  /** Rollouts whose last call failed, and when each said so. */
  readonly failing: ReadonlyMap<string, number>;
  /** Until then nobody is believed: a probe was just answered. */
  readonly well_until: number;
  /** When the next probe is due; null while there is no cause for one. */
  readonly probe_at: number | null;
  /** Probes that met a fault, in a row. */
  readonly faults: number;
  /** Who is asked by the probe. */
  readonly model: string;
}

export const UNSUSPECTED: Suspicion = {
  failing: new Map(),
  well_until: 0,
  probe_at: null,
  faults: 0,
  model: "",
};

/** As many as open the circuit by their ends: fewer just fail. */
const ROLLOUTS_TO_SUSPECT = FAILURES_TO_OPEN;
const PROBES_TO_FIND = 3;
const FIRST_PAUSE_MS = 500;
/** What was said longer ago says nothing about now. */
const SAID_MS = 60_000;
/** Less than the retries of a call take. */
const TRUSTED_MS = 1000;

/** A call of this rollout failed, and is about to be tried again. */
export function suspect(before: Suspicion, { rollout_id, model, limited }: FailedTry, now: number): Suspicion {
  if (limited || before.probe_at !== null || now < before.well_until) return before;
  const recent = [...before.failing].filter(([id, at]) => id !== rollout_id && now - at < SAID_MS);
  const failing = new Map([...recent, [rollout_id, now]]);
  const probe_at = failing.size < ROLLOUTS_TO_SUSPECT ? null : now;
  return { ...before, failing, probe_at, model };
}

/** A rollout was answered then: what failed before proves nothing. */
export function clear(before: Suspicion, answeredAt: number): Suspicion {
  const failing = new Map([...before.failing].filter(([, at]) => at > answeredAt));
  return failing.size === before.failing.size ? before : { ...before, failing };
}

/** What the probe met: null for an answer. */
export interface ProbeFault {
  readonly error: string;
  /** `silent`: no answer for as long as one is waited for. `limited`: 429. `unasked`: it could not leave. */
  readonly kind: "refused" | "silent" | "limited" | "unasked";
}

/** After a probe, and whether the endpoint is found down. */
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
