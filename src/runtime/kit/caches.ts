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
  readonly #renewedMs: number;
  readonly #kept = new Map<string, { readonly since: number; readonly value: T; renewing: boolean }>();

  /** `renewedMs`: from then on whoever asks first reads anew; the others are given what is kept until it is too old. */
  constructor(keptMs: number, renewedMs: number = keptMs) {
    this.#keptMs = keptMs;
    this.#renewedMs = renewedMs;
  }

  /** The value known, or the one read now. `now` is epoch milliseconds. */
  async get(name: string, now: number, read: () => Promise<T>): Promise<T> {
    for (const [key, { since }] of this.#kept) {
      if (since + this.#keptMs <= now) this.#kept.delete(key);
    }
    const known = this.#kept.get(name);
    if (known !== undefined && (known.renewing || now < known.since + this.#renewedMs)) return known.value;
    if (known !== undefined) known.renewing = true;
    const value = await read();
    this.#kept.set(name, { since: now, value, renewing: false });
    return value;
  }

  forget(name: string): void {
    this.#kept.delete(name);
  }
}
