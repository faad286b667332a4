/**
 * The limit of requests a minute, as a token bucket that fills evenly. Pure. Isolates ask for blocks of requests, not
 * for each request. After a pause, a whole minute's requests may come at once.
 */
import type { RequestsAsk, RequestsLease } from "./rpc.ts";

const MINUTE = 60_000;

export class RequestBudget {
  #tokens: number | null = null;
  #at = 0;

  /** `now`: epoch milliseconds. */
  take({ limit, want, unused }: RequestsAsk, now: number): RequestsLease {
    const filled = this.#tokens === null ? limit : this.#tokens + (Math.max(0, now - this.#at) * limit) / MINUTE;
    const tokens = Math.min(limit, filled + unused);
    const granted = Math.max(0, Math.min(want, Math.floor(tokens)));
    const left = tokens - granted;
    this.#tokens = left;
    this.#at = now;
    const wait = (missing: number) => (limit === 0 ? MINUTE : Math.ceil((Math.max(0, missing) * MINUTE) / limit));
    return { granted, remaining: Math.max(0, Math.floor(left)), retryMs: wait(1 - left), resetMs: wait(limit - left) };
  }
}
