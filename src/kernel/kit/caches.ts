import { RolloutError } from "../../contract/errors.ts";

/** The values used most recently, in the isolate's memory. The least recently used value is evicted first. */
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

/** If the database does not answer, values that were read at most this long ago are still used. */
export const OUTAGE_MS = 5 * 60_000;

/** How long isolates keep settings, and after which age one of their callers finds out whether they are current. */
export const SETTINGS_KEPT_MS = 5000;
export const SETTINGS_RENEWED_MS = 4000;
/** Settings that did not change are read again after this time (settings-cache.ts). */
export const SETTINGS_AGE_MS = 5 * 60_000;

/**
 * Values kept in the isolate's memory for a while. It stores values and not promises: an object that awaits another
 * object's promise continues in the context of that object, where it may not use its own storage.
 */
export class TtlCache<T> {
  readonly #keptMs: number;
  readonly #renewedMs: number;
  readonly #outageMs: number;
  readonly #kept = new Map<string, { readonly since: number; readonly value: T; renewing: boolean }>();

  /**
   * `renewedMs`: after this age, the first caller reads the value again; others get the kept value until it is `keptMs`
   * old. `outageMs`: maximum age of a kept value that may replace a failed read. A `RolloutError` is a result of the
   * read, not a failed read.
   */
  constructor(keptMs: number, renewedMs: number = keptMs, outageMs = 0) {
    this.#keptMs = keptMs;
    this.#renewedMs = renewedMs;
    this.#outageMs = outageMs;
  }

  /** The kept value, or one that is read now. `now` is epoch milliseconds. */
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
