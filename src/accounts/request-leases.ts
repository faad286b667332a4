/**
 * This isolate's blocks of requests: what it may let in without asking whoever counts them.
 *
 * Invariants. Nothing is let in that was not granted. A block lasts 5 s at most, and what is left of it is given back
 * with the next ask, so a request costs no call. Of one counter at most `ASKS_AT_ONCE` asks are under way here; whoever
 * comes meanwhile looks again soon, and does not wait for another request's ask, which ends with that request. After a
 * refusal nobody is asked until something may be granted again.
 */
import { LruCache } from "../kernel/kit/caches.ts";
import type { RequestsAsk, RequestsGrant } from "./rpc.ts";

/** How long a block lasts. */
export const BLOCK_MS = 5000;
/** A refusal holds at least so long, that a flood does not become as many asks. */
const LEAST_REFUSAL_MS = 250;
const ASKS_AT_ONCE = 2;
/** An ask that takes longer is counted no more: its request may be gone. */
const ASK_MS = 2000;
const LOOK_AGAIN_MS = 5;
const LARGEST_FIRST_BLOCK = 4;
const KNOWN_COUNTERS = 2000;

export interface Taken {
  readonly limit: number;
  /** So many more may follow, unless other isolates take them. */
  readonly remaining: number;
  /** Milliseconds until the whole limit is there again. */
  readonly resetMs: number;
  /** Null: let in. Else milliseconds until it may be. */
  readonly refusedMs: number | null;
}

interface Counter {
  /** Granted and not used. */
  left: number;
  /** Epoch milliseconds: what is left then is given back. */
  until: number;
  /** Used of the blocks since the last ask. */
  used: number;
  refusedUntil: number;
  /** What the last ask was told. */
  grant: RequestsGrant | null;
  /** When asks began that are under way. */
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

  /** One request. `name` is the counter's; `ask` reaches it. Throws what `ask` throws. */
  async take(
    name: string,
    limit: number,
    { now, pause }: Clock,
    ask: (asked: RequestsAsk) => Promise<RequestsGrant>,
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
    const made = { left: 0, until: 0, used: 0, refusedUntil: 0, grant: null, asking: [], waiting: 0 };
    this.#counters.set(name, made);
    return made;
  }
}

/** Let in or refused by what is known; null: somebody must be asked. */
function take(counter: Counter, limit: number, now: number): Taken | null {
  const { left, until, refusedUntil, grant } = counter;
  if (grant === null) return null;
  if (left > 0 && now < until) {
    counter.left -= 1;
    counter.used += 1;
    return { limit, remaining: counter.left + grant.remaining, resetMs: grant.resetMs, refusedMs: null };
  }
  if (now >= refusedUntil) return null;
  return { limit, remaining: 0, resetMs: grant.resetMs, refusedMs: refusedUntil - now };
}

async function askMore(
  counter: Counter,
  limit: number,
  now: () => number,
  ask: (asked: RequestsAsk) => Promise<RequestsGrant>,
): Promise<void> {
  const since = now();
  const unused = counter.left;
  const first = Math.max(1, Math.min(LARGEST_FIRST_BLOCK, Math.floor(limit / 15)));
  const want = Math.min(limit, Math.max(first, counter.waiting, Math.ceil(counter.used * 1.5)));
  counter.left = 0;
  counter.used = 0;
  counter.asking.push(since);
  try {
    const grant = await ask({ limit, want, unused });
    counter.grant = grant;
    counter.left += grant.granted;
    counter.until = now() + BLOCK_MS;
    if (grant.granted > 0) counter.refusedUntil = 0;
    else counter.refusedUntil = now() + Math.min(BLOCK_MS, Math.max(LEAST_REFUSAL_MS, grant.retryMs));
  } finally {
    counter.asking = counter.asking.filter((other) => other !== since);
  }
}
