/**
 * Alarms of objects. An object remembers when its alarm is due, because it need not be set again for later work. The
 * runtime may lose an alarm, and then nothing would set it again.
 */

/** An alarm that has not fired for this long after its time is lost. */
const LOST_MS = 60_000;

/**
 * Whether an alarm that was set for `armedAt` (null: none) makes one at `at` unnecessary. All in epoch milliseconds. An
 * alarm that fires too early costs less than setting it again with every call.
 */
export function isArmed(armedAt: number | null, at: number, now: number): boolean {
  return armedAt !== null && armedAt <= at && now - armedAt <= LOST_MS;
}
