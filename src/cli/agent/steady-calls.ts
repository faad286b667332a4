/**
 * The calls of a worker to the platform. A call that the platform does not answer now (a broken connection, 429, 5xx) is
 * made again after 1 s, doubling to 30 s, until it is answered or no longer needed. Any other error is thrown.
 */
import { ApiRequestError } from "../../sdk/request-error.ts";
import { isBrokenConnection, pause } from "../../sdk/transport.ts";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;

export class SteadyCalls {
  readonly #log: (line: string) => void;
  /** It is logged once that the platform does not answer, not for every call. */
  #isDown = false;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** `needed`: when it is aborted, the call is not made again, and the last error or the signal's reason is thrown. */
  async make<T>(call: () => Promise<T>, needed: AbortSignal): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        const answer = await call();
        if (this.#isDown) this.#log("The platform answers again.");
        this.#isDown = false;
        return answer;
      } catch (error) {
        if (needed.aborted || !isPassing(error)) throw error;
        if (!this.#isDown) this.#log(`The platform does not answer (${messageOf(error)}): trying again.`);
        this.#isDown = true;
        await pause(waitAfter(error, tries), needed);
      }
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof ApiRequestError) return error.status >= 500 || error.status === 429;
  return isBrokenConnection(error);
}

function waitAfter(error: unknown, tries: number): number {
  const asked = error instanceof ApiRequestError ? error.retryAfterMs : null;
  const backoff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(tries, 10));
  return Math.max(Math.min(asked ?? 0, LONGEST_WAIT_MS), backoff * (0.5 + Math.random() / 2));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
