/** The times of a plan, in milliseconds, and what the two ways of waiting for the model differ in. */
import type { Driver } from "./plan.ts";

/** Deadline of one model call; silence of the model costs as much. */
export const CALL_TIMEOUT_MS = 5000;
/** A kill counts with at least so many rollouts in flight. */
export const LEAST_IN_FLIGHT = 10;
/** From a boot, or from the return of a store that was away, to the first call of the model, with nobody calling. */
const RECOVERY_MS = 2000;

interface DriverLimits {
  readonly recovery_ms: number;
  /** Calls that wait for their answer, at least, when a kill falls. */
  readonly open_calls: number;
  /** Of one call; more than the faults it meets, so that none of them ends a rollout. */
  readonly max_retries: number;
  /** Whether the model may keep silent. */
  readonly silence: boolean;
}

export const LIMITS_OF: Readonly<Record<Driver, DriverLimits>> = {
  alarm: {
    recovery_ms: RECOVERY_MS,
    open_calls: LEAST_IN_FLIGHT,
    max_retries: 6,
    silence: true,
  },
  // A message that is lost costs its call's deadline and one try. The local broker hands over one batch of six at a
  // time, so a silent call would use up the time of those behind it.
  queue: {
    recovery_ms: CALL_TIMEOUT_MS + RECOVERY_MS,
    open_calls: 3,
    max_retries: 20,
    silence: false,
  },
};
