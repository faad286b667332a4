/** Waits between tries: exponential with full jitter. The jitter is seeded, so a restart waits for the same time. */
import { seededRandom } from "../../contract/random.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 60_000;
/** The longest wait that an endpoint may ask for. If it asks for more, it is called after this time. */
const LONGEST_ASKED_MS = 10 * 60_000;

/** Milliseconds before try `failures` + 1. At least what the endpoint asked for, up to `LONGEST_ASKED_MS`. */
export function backoffMs(failures: number, retryAfterMs: number | null, seed: string): number {
  const ceiling = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
  const jittered = ceiling * (0.5 + 0.5 * seededRandom("backoff", seed, failures)());
  return Math.max(Math.round(jittered), Math.min(LONGEST_ASKED_MS, retryAfterMs ?? 0));
}
