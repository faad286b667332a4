import { RolloutError } from "../../contract/errors.ts";

/** The values used last, kept in the isolate's memory: what nobody asked for the longest goes first. */
export class LruCache<Value> {
  readonly #room: number;
  readonly #kept = new Map<string, Value>();

  constructor(room: number) {
    this.#room = room;
  }

  get(name: string): Value | undefined {
    const value = this.#kept.get(name);
    if (value === undefined) return undefined;
    this.#kept.delete(name);
    this.#kept.set(name, value);
    return value;
  }

  set(name: string, value: Value): void {
    this.#kept.delete(name);
    this.#kept.set(name, value);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > this.#room && !oldest.done) this.#kept.delete(oldest.value);
  }
}

/** While the database does not answer, what was read so long ago still counts. */
export const OUTAGE_MS = 5 * 60_000;

/**
 * What was opened, kept in the isolate's memory for a while. Values are kept, not promises: an object that waits
 * for the promise of another one goes on in that one's name, and may not touch its own storage there.
 */
export class TtlCache<T> {
  readonly #keptMs: number;
  readonly #renewedMs: number;
  readonly #outageMs: number;
  readonly #kept = new Map<string, { readonly since: number; readonly value: T; renewing: boolean }>();

  /**
   * `renewedMs`: from then on whoever asks first reads anew; the others are given what is kept until it is too old.
   * `outageMs`: so old may be what stands in for a read that failed. A `RolloutError` is no failure to read, but what was
   * read.
   */
  constructor(keptMs: number, renewedMs: number = keptMs, outageMs = 0) {
    this.#keptMs = keptMs;
    this.#renewedMs = renewedMs;
    this.#outageMs = outageMs;
  }

  /** The value known, or the one read now. `now` is epoch milliseconds. */
  async get(name: string, now: number, read: () => Promise<T>): Promise<T> {
    for (const [key, { since }] of this.#kept) {
      if (since + Math.max(this.#keptMs, this.#outageMs) <= now) this.#kept.delete(key);
    }
    const known = this.#kept.get(name);
    const age = now - (known?.since ?? 0);
    if (known !== undefined && age < (known.renewing ? this.#keptMs : this.#renewedMs)) return known.value;
    if (known !== undefined) known.renewing = true;
    try {
      const value = await read();
      this.#kept.set(name, { since: now, value, renewing: false });
      return value;
    } catch (thrown) {
      if (known === undefined || age >= this.#outageMs || thrown instanceof RolloutError) throw thrown;
      return known.value;
    }
  }

  forget(name: string): void {
    this.#kept.delete(name);
  }
}
