/**
 * What was opened, kept in the isolate's memory for a while. Values are kept, not promises: what one invocation reads
 * another must not have to wait for.
 */
export class ShortMemory<T> {
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
