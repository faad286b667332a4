/**
 * What of a run is in one kind of shared queue: messages, by what each of them names. In memory only. A fresh instance of
 * the run begins with none, so what a restarted one sent before is on top of what it sends then.
 */
export class InQueue<Key> {
  readonly #messages = new Map<number, Set<Key>>();
  readonly #messageOf = new Map<Key, number>();
  #last = 0;

  /** Messages. */
  get count(): number {
    return this.#messages.size;
  }

  has(key: Key): boolean {
    return this.#messageOf.has(key);
  }

  /** What is sent again takes the place of what is lost. */
  sent(keys: readonly Key[]): void {
    for (const key of keys) this.#drop(key);
    this.#last += 1;
    this.#messages.set(this.#last, new Set(keys));
    for (const key of keys) this.#messageOf.set(key, this.#last);
  }

  /** A message that names one of these was taken out of the queue, with all that it names. */
  taken(keys: readonly Key[]): void {
    for (const key of keys) {
      const message = this.#messageOf.get(key);
      if (message !== undefined) for (const other of this.#messages.get(message) ?? []) this.#drop(other);
    }
  }

  /** Forgets what nobody waits for any more. */
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
