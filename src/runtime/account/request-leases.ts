/**
 * This isolate's blocks of requests: what it may let in without asking whoever counts them.
 *
 * Invariants. A block lasts 5 s at most, so a request costs no call. While one request asks for the next block, others
 * go on, at most as many as the block before was large; they are told as used with the next ask. After a refusal nobody
 * is asked until something may be granted again. What an isolate holds when it goes is lost to the caller for a minute
 * at most: the bucket fills again.
 */

import type { RequestsAsk, RequestsGrant } from "../contract/account-wire.ts";
import { LruCache } from "../kit/caches.ts";

/** How long a block lasts. */
export const BLOCK_MS = 5000;
const SMALLEST_BLOCK = 4;
const KNOWN_COUNTERS = 2000;

export interface Taken {
  readonly limit: number;
  /** At least so many more may follow now. */
  readonly remaining: number;
  /** Milliseconds until the whole limit is there again. */
  readonly resetMs: number;
  /** Null: let in. Else milliseconds until it may be. */
  readonly refusedMs: number | null;
}

interface Block {
  granted: number;
  used: number;
  /** Epoch milliseconds. */
  until: number;
  /** The grant that it came with. */
  grant: RequestsGrant;
  /** Somebody asks for the next one. */
  asking: boolean;
}

export class RequestLeases {
  readonly #blocks = new LruCache<Block>(KNOWN_COUNTERS);

  /** One request. `name` is the counter's; `ask` reaches it. */
  async take(
    name: string,
    limit: number,
    now: () => number,
    ask: (asked: RequestsAsk) => Promise<RequestsGrant>,
  ): Promise<Taken> {
    const known = this.#blocks.get(name);
    if (known !== undefined && this.#covers(known, now())) return takenOf(known, limit, now());
    if (known !== undefined) known.asking = true;
    try {
      const unused = known === undefined ? 0 : known.granted - known.used;
      const want = Math.min(limit, Math.max(SMALLEST_BLOCK, Math.ceil((known?.used ?? 0) * 1.5)));
      const grant = await ask({ limit, want, unused });
      // The block of a refusal lasts until something may be granted.
      const lasts = grant.granted > 0 ? BLOCK_MS : Math.min(BLOCK_MS, Math.max(1, grant.retryMs));
      const block = { granted: grant.granted, used: 0, until: now() + lasts, grant, asking: false };
      this.#blocks.set(name, block);
      block.used += grant.granted > 0 ? 1 : 0;
      return takenOf(block, limit, now());
    } finally {
      if (known !== undefined) known.asking = false;
    }
  }

  /** Counts the request into the block if it has room, or a reason to let it in. */
  #covers(block: Block, now: number): boolean {
    if (now < block.until && block.granted === 0) return true;
    const within = now < block.until && block.used < block.granted;
    const meanwhile = block.asking && block.granted > 0 && block.used < 2 * block.granted;
    if (!within && !meanwhile) return false;
    block.used += 1;
    return true;
  }
}

function takenOf({ granted, used, until, grant }: Block, limit: number, now: number): Taken {
  const remaining = grant.remaining + Math.max(0, granted - used);
  return { limit, remaining, resetMs: grant.resetMs, refusedMs: granted > 0 ? null : Math.max(1, until - now) };
}
