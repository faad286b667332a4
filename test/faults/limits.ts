/** The times of a plan, in milliseconds. */

/** Deadline of one model call; silence of the model costs as much. */
export const CALL_TIMEOUT_MS = 5000;
/** From a boot to the first call of the model, with nobody calling. */
export const RECOVERY_MS = 2000;
/** A kill counts with at least so many rollouts in flight. */
export const LEAST_IN_FLIGHT = 10;
