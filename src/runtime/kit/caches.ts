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

/**
 * What was opened, kept in the isolate's memory for a while. Values are kept, not promises: an object that waits
 * for the promise of another one goes on in that one's name, and may not touch its own storage there.
 */
export class TtlCache<T> {
  readonly #keptMs: number;
  readonly #kept = new Map<string, { readonly until: number; readonly value: T }>();

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** The value known, or the one read now. `now` is epoch milliseconds. */
  async get(name: string, now: number, read: () => Promise<T>): Promise<T> {
    for (const [key, { until }] of this.#kept) {
      if (until <= now) this.#kept.delete(key);
    }
    const known = this.#kept.get(name);
    if (known !== undefined) return known.value;
    const value = await read();
    this.#kept.set(name, { until: now + this.#keptMs, value });
    return value;
  }

  forget(name: string): void {
    this.#kept.delete(name);
  }
}
