/** The limits of a plan; times are in milliseconds. */

/** The timeout of one model call; a silent model costs as much. */
export const CALL_TIMEOUT_MS = 10_000;
/** A kill counts only if at least this many calls wait for their answer. */
export const LEAST_IN_FLIGHT = 10;
/**
 * From a boot, or from the return of a store that was unavailable, to the first call of the model, without any request
 * to the platform.
 */
export const RECOVERY_MS = 2000;
/** Per call; more than the faults it meets, so that none of them ends a rollout. */
export const MAX_RETRIES = 6;
