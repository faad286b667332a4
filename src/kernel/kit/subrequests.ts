/**
 * Counts and bounds the outgoing calls of one invocation. Production stops an invocation at 10,000 subrequests, and
 * lets at most 6 of them wait for the headers of their replies. The local runtime enforces neither, so local tests would
 * not notice a fan-out that is too wide. This counter throws above our own, lower limits. An object that plays rollouts
 * has one counter for all of them: it has no total limit (the object's alarm ends by the count), and calls wait for a
 * connection instead of being refused.
 *
 * Invariant. A call to a server frees its connection when the headers of the reply are here, and reads the body without
 * one. So these connections do not bound the number of bodies, nor their memory: `IsolateMemory` does. Any other call (R2,
 * queues, D1) holds its connection to its end.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Connection } from "../clients/outgoing.ts";
import { Semaphore, unlessAborted } from "./semaphore.ts";

/** Objects called at once. RPC uses none of the six connections, but many cold objects at once cost memory. */
const PARALLEL_OBJECTS = 32;

export class Subrequests {
  #count = 0;
  readonly #connections = new Semaphore(() => LIMITS.parallelFetches);
  readonly #limit: number;
  readonly #waits: boolean;

  /** `waits`: its users do not know about each other, so `fetch` waits for a connection instead of refusing. */
  constructor(limit: number = LIMITS.subrequests, { waits = false }: { readonly waits?: boolean } = {}) {
    this.#limit = limit;
    this.#waits = waits;
  }

  get count(): number {
    return this.#count;
  }

  /** One call to a service that uses a connection (fetch, R2, queues, D1). */
  async fetch<T>(call: () => Promise<T>): Promise<T> {
    if (this.#connections.full && !this.#waits) {
      throw new Error(`more than ${LIMITS.parallelFetches} connections open in one invocation`);
    }
    return await this.inTurn(call);
  }

  /**
   * The same, but waits for a connection, in order of arrival: for callers that do not know about each other. `during`
   * gets the wait; if it throws, the call is not made.
   */
  inTurn<T>(call: (connection: Connection) => Promise<T>, during?: (wait: Promise<void>) => Promise<void>): Promise<T> {
    const counted = async (leave: () => void) => {
      this.#spend();
      return await call(this.#connection(leave));
    };
    return this.#connections.run(counted, during);
  }

  #connection(leave: () => void): Connection {
    let held = true;
    return {
      request: async (send, signal) => {
        if (!held) {
          const again = (connection: Connection) => connection.request(send, signal);
          return await this.inTurn(again, (wait) => unlessAborted(wait, signal));
        }
        const reply = await send();
        held = !reply.ok;
        if (!held) leave();
        return reply;
      },
    };
  }

  /** One call to another object. */
  async object<T>(call: () => Promise<T>): Promise<T> {
    this.#spend();
    return await call();
  }

  /** Calls `call` for every item, with at most six connections at a time. Results are in order. */
  fetchAll<Item, T>(items: readonly Item[], call: (item: Item) => Promise<T>): Promise<T[]> {
    return this.six(items, (item) => this.fetch(() => call(item)));
  }

  /** The same for a `call` that counts itself, because it may not need a connection. */
  six<Item, T>(items: readonly Item[], call: (item: Item) => Promise<T>): Promise<T[]> {
    return mapBounded(items, LIMITS.parallelFetches, call);
  }

  /** Calls `call` for every item's object, with at most `width` at a time. Results are in order. */
  objectAll<Item, T>(
    items: readonly Item[],
    call: (item: Item) => Promise<T>,
    width: number = PARALLEL_OBJECTS,
  ): Promise<T[]> {
    return mapBounded(items, width, (item) => this.object(() => call(item)));
  }

  #spend(): void {
    this.#count += 1;
    if (this.#count > this.#limit) {
      throw new Error(`more than ${this.#limit} subrequests in one invocation: slice the work`);
    }
  }
}

async function mapBounded<Item, T>(
  items: readonly Item[],
  width: number,
  call: (item: Item) => Promise<T>,
): Promise<T[]> {
  const results = new Array<T>(items.length);
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await call(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}
