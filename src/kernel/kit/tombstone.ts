/**
 * The mark that remains for a day of an object whose storage was freed. A call that arrives late finds the mark and
 * does not create the object again. After the day nothing is left.
 */
const KEPT_MS = 24 * 3600_000;
const NAME = "freed_at";

export class Tombstone {
  readonly #storage: DurableObjectStorage;
  /** Epoch milliseconds; null if the object was not freed; undefined if the mark was not read yet. */
  #freedAt: number | null | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  get stands(): boolean {
    // `??=` would read storage at every call, because null means that there is no mark.
    if (this.#freedAt === undefined) this.#freedAt = this.#storage.kv.get<number>(NAME) ?? null;
    return this.#freedAt !== null;
  }

  /** Frees all storage of the object. If it is killed meanwhile, the object is unchanged or empty: call it again. */
  async set(now: number): Promise<void> {
    if (this.stands) return;
    this.#freedAt = now;
    try {
      await this.#storage.deleteAll();
      this.#storage.kv.put(NAME, now);
      await this.#storage.setAlarm(now + KEPT_MS);
    } catch (thrown) {
      // The next call must read the mark from disk.
      this.#freedAt = undefined;
      throw thrown;
    }
  }

  /** Must be called first in every alarm. True: the object is freed, and the alarm must do nothing else. */
  async decay(now: number): Promise<boolean> {
    if (!this.stands) return false;
    const until = (this.#freedAt ?? now) + KEPT_MS;
    if (now < until) await this.#storage.setAlarm(until);
    else await this.#storage.deleteAll();
    return true;
  }
}
