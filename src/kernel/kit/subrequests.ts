/**
 * The counter every invocation's outgoing work goes through. Production stops an invocation at 10,000 subrequests and
 * holds at most 6 connections; the local runtime enforces neither, so a fan-out that is too wide would pass every local
 * test. This one throws above our own, lower, limits. An object that plays rollouts has one for all of them, without a
 * limit in all (its alarm ends by the count) and with calls that wait for a connection in place of being refused.
 */
import { LIMITS } from "../../contract/limits.ts";
import { Turns } from "./turns.ts";

/** Objects addressed at once: RPC holds no connection of the six, but a burst of cold objects costs memory. */
const PARALLEL_OBJECTS = 32;

export class Subrequests {
  #count = 0;
  readonly #connections = new Turns(() => LIMITS.parallelFetches);
  readonly #limit: number;

  constructor(limit: number = LIMITS.subrequests) {
    this.#limit = limit;
  }

  get count(): number {
    return this.#count;
  }

  /** One call to a service that holds a connection (fetch, R2, queues, D1). */
  async fetch<T>(call: () => Promise<T>): Promise<T> {
    if (this.#connections.full) {
      throw new Error(`more than ${LIMITS.parallelFetches} connections open in one invocation`);
    }
    return await this.inTurn(call);
  }

  /**
   * The same, waiting for a connection, the longest waiting first: for callers that know nothing of each other. `during`
   * hears of the wait, and what it throws gives the call up.
   */
  inTurn<T>(call: () => Promise<T>, during?: (wait: Promise<void>) => Promise<void>): Promise<T> {
    const counted = async () => {
      this.#spend();
      return await call();
    };
    return this.#connections.run(counted, during);
  }

  /** One call to another object. */
  async object<T>(call: () => Promise<T>): Promise<T> {
    this.#spend();
    return await call();
  }

  /** `call` over every item, at most six connections at a time, results in order. */
  fetchAll<Item, T>(items: readonly Item[], call: (item: Item) => Promise<T>): Promise<T[]> {
    return this.six(items, (item) => this.fetch(() => call(item)));
  }

  /** The same for a `call` that counts by itself, because it may not need a connection after all. */
  six<Item, T>(items: readonly Item[], call: (item: Item) => Promise<T>): Promise<T[]> {
    return mapBounded(items, LIMITS.parallelFetches, call);
  }

  /** `call` over every item's object, in bounded parallel, results in order. */
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
