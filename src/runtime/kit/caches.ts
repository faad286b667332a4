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

/** A look-up takes milliseconds. One that takes longer may have gone with the invocation that began it. */
const LONGEST_WAIT_MS = 2000;

/**
 * What was opened, kept in the isolate's memory for a while. Whoever asks while it is looked up waits for that look-up,
 * for two seconds at most: its invocation may be cut off, and then nobody answers. If it fails, it fails for all of
 * them, and the next one looks anew.
 */
export class TtlCache<T> {
  readonly #keptMs: number;
  readonly #waitMs: number;
  readonly #kept = new Map<string, { readonly until: number; readonly value: T }>();
  readonly #underWay = new Map<string, Promise<T>>();
  /** How often something was forgotten: what was looked up before may be what was. */
  #forgotten = 0;

  constructor(keptMs: number, waitMs: number = LONGEST_WAIT_MS) {
    this.#keptMs = keptMs;
    this.#waitMs = waitMs;
  }

  /** The value known, or the one read now. `now` is epoch milliseconds. */
  async get(name: string, now: number, read: () => Promise<T>): Promise<T> {
    for (const [key, { until }] of this.#kept) {
      if (until <= now) this.#kept.delete(key);
    }
    const known = this.#kept.get(name);
    if (known !== undefined) return known.value;
    const underWay = this.#underWay.get(name);
    const heard = underWay === undefined ? null : await this.#heard(underWay);
    return heard === null ? await this.#lookUp(name, now, read) : heard.value;
  }

  forget(name: string): void {
    this.#forgotten += 1;
    this.#kept.delete(name);
    this.#underWay.delete(name);
  }

  async #lookUp(name: string, now: number, read: () => Promise<T>): Promise<T> {
    const forgotten = this.#forgotten;
    const underWay = read();
    this.#underWay.set(name, underWay);
    try {
      const value = await underWay;
      if (forgotten === this.#forgotten) this.#kept.set(name, { until: now + this.#keptMs, value });
      return value;
    } finally {
      if (this.#underWay.get(name) === underWay) this.#underWay.delete(name);
    }
  }

  /** What another's look-up found; null if it did not come in time. */
  async #heard(underWay: Promise<T>): Promise<{ readonly value: T } | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(() => resolve(null), this.#waitMs);
    try {
      return await Promise.race([underWay.then((value) => ({ value })), late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
