/** The limits of a plan; times are in milliseconds. */

/** Deadline of one model call; silence of the model costs as much. */
export const CALL_TIMEOUT_MS = 5000;
/** A kill counts with at least so many calls that wait for their answer. */
export const LEAST_IN_FLIGHT = 10;
/** From a boot, or from the return of a store that was away, to the first call of the model, with nobody calling. */
export const RECOVERY_MS = 2000;
/** Of one call; more than the faults it meets, so that none of them ends a rollout. */
export const MAX_RETRIES = 6;
