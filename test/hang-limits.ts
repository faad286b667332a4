/**
 * After how long a test or a wait counts as hanging. They are for machines that are slow or busy: a test that passes
 * never comes near them, so a shorter limit elsewhere only makes a test fail on such a machine.
 */
export const TEST_HANGS_MS = 600_000;
export const WAIT_HANGS_MS = TEST_HANGS_MS / 2;

/** For `vi.waitUntil` and `vi.waitFor`, whose own limit is a second. `expect.poll` has it by default. */
export const WAIT = { timeout: WAIT_HANGS_MS };
