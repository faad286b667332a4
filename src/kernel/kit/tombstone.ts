/**
 * What is left of an object whose storage was freed for good: one value, for a day. Whatever comes late finds the
 * object gone and begins nothing anew; after the day nothing is left.
 */
const KEPT_MS = 24 * 3600_000;
const NAME = "freed_at";

export class Tombstone {
  readonly #storage: DurableObjectStorage;
  /** Epoch milliseconds; null for an object that was not freed; undefined before anybody looked. */
  #freedAt: number | null | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  get stands(): boolean {
    // `??=` would look again at every call: null says that there was no mark.
    if (this.#freedAt === undefined) this.#freedAt = this.#storage.kv.get<number>(NAME) ?? null;
    return this.#freedAt !== null;
  }

  /** Frees all the object keeps. A kill meanwhile leaves it as it was, or empty: then it is to be asked again. */
  async set(now: number): Promise<void> {
    if (this.stands) return;
    this.#freedAt = now;
    try {
      await this.#storage.deleteAll();
      this.#storage.kv.put(NAME, now);
      await this.#storage.setAlarm(now + KEPT_MS);
    } catch (thrown) {
      // Whoever asks again must look at the disk.
      this.#freedAt = undefined;
      throw thrown;
    }
  }

  /** To be asked first in every alarm. True: the object is freed, and the alarm has nothing else to do. */
  async decay(now: number): Promise<boolean> {
    if (!this.stands) return false;
    const until = (this.#freedAt ?? now) + KEPT_MS;
    if (now < until) await this.#storage.setAlarm(until);
    else await this.#storage.deleteAll();
    return true;
  }
}
