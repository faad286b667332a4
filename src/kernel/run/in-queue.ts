/**
 * The messages of a run in one kind of shared queue, by the keys that each message names. In memory only: a fresh
 * instance of the run begins with none, so messages sent before a restart are not counted.
 */
export class InQueue<Key> {
  readonly #messages = new Map<number, Set<Key>>();
  readonly #messageOf = new Map<Key, number>();
  #last = 0;

  /** The number of messages. */
  get count(): number {
    return this.#messages.size;
  }

  has(key: Key): boolean {
    return this.#messageOf.has(key);
  }

  /** A message that is sent again replaces the lost one. */
  sent(keys: readonly Key[]): void {
    for (const key of keys) this.#drop(key);
    this.#last += 1;
    this.#messages.set(this.#last, new Set(keys));
    for (const key of keys) this.#messageOf.set(key, this.#last);
  }

  /** The message that names one of these was taken out of the queue. Its other keys are removed with it. */
  taken(keys: readonly Key[]): void {
    for (const key of keys) {
      const message = this.#messageOf.get(key);
      if (message !== undefined) for (const other of this.#messages.get(message) ?? []) this.#drop(other);
    }
  }

  /** Forgets keys that are no longer awaited. */
  prune(awaited: (key: Key) => boolean): void {
    for (const key of [...this.#messageOf.keys()]) if (!awaited(key)) this.#drop(key);
  }

  #drop(key: Key): void {
    const message = this.#messageOf.get(key);
    if (message === undefined) return;
    this.#messageOf.delete(key);
    const keys = this.#messages.get(message);
    keys?.delete(key);
    if (keys?.size === 0) this.#messages.delete(message);
  }
}
