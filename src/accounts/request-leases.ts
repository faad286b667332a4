/**
 * Blocks of requests that this isolate may allow without asking the counter.
 *
 * Invariants. Only granted requests are allowed. A block lasts 5 s at most, and the rest of it is given back with the
 * next ask, so a request costs no call. At most `ASKS_AT_ONCE` asks to one counter are in progress here. Other requests
 * check again after `LOOK_AGAIN_MS`, and never wait for another request's ask, which ends with that request. After a
 * refusal nobody asks until something may be granted again.
 */
import { LruCache } from "../kernel/kit/caches.ts";
import type { RequestsAsk, RequestsLease } from "./rpc.ts";

/** How long a block lasts. */
export const BLOCK_MS = 5000;
/** The least duration of a refusal, so that a flood of requests does not become a flood of asks. */
const LEAST_REFUSAL_MS = 250;
const ASKS_AT_ONCE = 2;
/** An ask that takes longer no longer counts as in progress: its request may have ended. */
const ASK_MS = 2000;
const LOOK_AGAIN_MS = 5;
const LARGEST_FIRST_BLOCK = 4;
const KNOWN_COUNTERS = 2000;

export interface Taken {
  readonly limit: number;
  /** How many more requests may follow, unless other isolates use them. */
  readonly remaining: number;
  /** Milliseconds until the bucket is full again. */
  readonly resetMs: number;
  /** Null: allowed. Otherwise milliseconds until a request may be allowed. */
  readonly refusedMs: number | null;
}

interface Counter {
  /** Granted and not used. */
  left: number;
  /** When the unused rest is given back, in epoch milliseconds. */
  until: number;
  /** Requests allowed since the last ask. */
  used: number;
  refusedUntil: number;
  /** The reply to the last ask. */
  lease: RequestsLease | null;
  /** When the asks in progress started. */
  asking: number[];
  /** Requests that wait for a grant. */
  waiting: number;
}

export interface Clock {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

export class RequestLeases {
  readonly #counters = new LruCache<Counter>(KNOWN_COUNTERS);

  /** Takes one request. `name`: the counter's name; `ask` calls the counter. Throws the errors of `ask`. */
  async take(
    name: string,
    limit: number,
    { now, pause }: Clock,
    ask: (asked: RequestsAsk) => Promise<RequestsLease>,
  ): Promise<Taken> {
    const counter = this.#counter(name);
    const begun = now();
    counter.waiting += 1;
    try {
      for (;;) {
        const taken = take(counter, limit, now());
        if (taken !== null) return taken;
        counter.asking = counter.asking.filter((since) => since > now() - ASK_MS);
        if (counter.asking.length < ASKS_AT_ONCE || now() - begun > ASK_MS) await askMore(counter, limit, now, ask);
        else await pause(LOOK_AGAIN_MS);
      }
    } finally {
      counter.waiting -= 1;
    }
  }

  #counter(name: string): Counter {
    const known = this.#counters.get(name);
    if (known !== undefined) return known;
    const made = { left: 0, until: 0, used: 0, refusedUntil: 0, lease: null, asking: [], waiting: 0 };
    this.#counters.set(name, made);
    return made;
  }
}

/** Allows or refuses with the known grant; null: the counter must be asked. */
function take(counter: Counter, limit: number, now: number): Taken | null {
  const { left, until, refusedUntil, lease } = counter;
  if (lease === null) return null;
  if (left > 0 && now < until) {
    counter.left -= 1;
    counter.used += 1;
    return { limit, remaining: counter.left + lease.remaining, resetMs: lease.resetMs, refusedMs: null };
  }
  if (now >= refusedUntil) return null;
  return { limit, remaining: 0, resetMs: lease.resetMs, refusedMs: refusedUntil - now };
}

async function askMore(
  counter: Counter,
  limit: number,
  now: () => number,
  ask: (asked: RequestsAsk) => Promise<RequestsLease>,
): Promise<void> {
  const since = now();
  const unused = counter.left;
  const first = Math.max(1, Math.min(LARGEST_FIRST_BLOCK, Math.floor(limit / 15)));
  const want = Math.min(limit, Math.max(first, counter.waiting, Math.ceil(counter.used * 1.5)));
  counter.left = 0;
  counter.used = 0;
  counter.asking.push(since);
  try {
    const lease = await ask({ limit, want, unused });
    counter.lease = lease;
    counter.left += lease.granted;
    counter.until = now() + BLOCK_MS;
    if (lease.granted > 0) counter.refusedUntil = 0;
    else counter.refusedUntil = now() + Math.min(BLOCK_MS, Math.max(LEAST_REFUSAL_MS, lease.retryMs));
  } finally {
    counter.asking = counter.asking.filter((other) => other !== since);
  }
}
