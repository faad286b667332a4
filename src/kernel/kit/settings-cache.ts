/**
 * Settings of organisations in the isolate's memory: endpoints with their keys, replicas, secrets, allowed hosts, API
 * keys.
 *
 * Invariants. A kept value is used for at most `SETTINGS_KEPT_MS` after it was last known to be current. Then the
 * isolate asks the organisation's audit object for the version of its settings, once for all of them. If the value was
 * read at that version, and at most `SETTINGS_AGE_MS` ago, it is still current and is not read again. The version is
 * asked for before a value is read, so a change meanwhile gives the value an old version. While one caller reads a value,
 * the others use the kept value; if it is too old, they wait for the read to end. While a change is in progress, or if the
 * object does not reply in time, the version is unknown (null): then each value is read again when it is
 * `SETTINGS_RENEWED_MS` old.
 */
import { RolloutError } from "../../contract/errors.ts";
import { accounts } from "./account-hooks.ts";
import { OUTAGE_MS, SETTINGS_AGE_MS, SETTINGS_KEPT_MS, SETTINGS_RENEWED_MS } from "./caches.ts";
import { logError } from "./log.ts";

/** A request for the version fails after this time; then the version is unknown. */
const VERSION_WAIT_MS = 3000;
/** After a request that failed, the object is not called for this time: otherwise each caller would wait for it. */
const SILENT_MS = 10_000;

/** A caller waits at most this long for another caller's read, and looks this often whether it has ended. */
const [READ_WAIT_MS, LOOK_MS] = [1000, 5];

/** Limits of each cache, and of the organisations whose version is kept. */
const ROOM = { entries: 2000, characters: 4 * 1024 ** 2 } as const;

interface Heard {
  /** Null: there is none now. */
  readonly version: string | null;
  /** When the object was asked, in epoch milliseconds. */
  readonly at: number;
}

/** The latest versions of organisations' settings that this isolate got. */
export class SettingsVersions {
  readonly #keptMs: number;
  readonly #renewedMs: number;
  readonly #heard = new Map<string, Heard & { asking: boolean; readonly silentUntil: number }>();

  /** `renewedMs`: after this age, the first caller asks again; others get the known version until it is `keptMs` old. */
  constructor(keptMs: number, renewedMs: number) {
    this.#keptMs = keptMs;
    this.#renewedMs = renewedMs;
  }

  /** Never throws. `now`: epoch milliseconds. */
  async of(env: Env, orgId: string, now: number): Promise<Heard> {
    const known = this.#heard.get(orgId);
    if (known !== undefined && Date.now() < known.silentUntil) return { version: null, at: now };
    const age = now - (known?.at ?? 0);
    if (known !== undefined && age >= 0 && age < (known.asking ? this.#keptMs : this.#renewedMs)) return known;
    if (known !== undefined) known.asking = true;
    const version = await versionOf(env, orgId);
    const silentUntil = version === undefined ? Date.now() + SILENT_MS : 0;
    const heard = { version: version ?? null, at: now, asking: false, silentUntil };
    this.#heard.delete(orgId);
    this.#heard.set(orgId, heard);
    const oldest = this.#heard.keys().next();
    if (this.#heard.size > ROOM.entries && !oldest.done) this.#heard.delete(oldest.value);
    return heard;
  }
}

/** Undefined: the object did not reply. */
async function versionOf(env: Env, orgId: string): Promise<string | null | undefined> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${VERSION_WAIT_MS} ms`)), VERSION_WAIT_MS);
  try {
    return await Promise.race([accounts().settingsVersion(env, orgId), late]);
  } catch (thrown) {
    logError("the version of the settings is not known: they are read again", { org_id: orgId }, thrown);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

const versions = new SettingsVersions(SETTINGS_KEPT_MS, SETTINGS_RENEWED_MS);

interface Kept<T> {
  readonly value: T;
  readonly characters: number;
  /** When it was read, and the version that was known then. */
  readonly readAt: number;
  readonly version: string | null;
  /** When it was last known to be current. */
  currentAt: number;
}

export interface Asked {
  readonly env: Env;
  readonly orgId: string;
  /** Unique in the cache: it contains the organisation. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/**
 * It stores values and not promises: an object that awaits another object's promise continues in the context of that
 * object, where it may not use its own storage.
 */
export class SettingsCache<T> {
  /** The one that was current longest ago comes first. */
  readonly #kept = new Map<string, Kept<T>>();
  /** When the value of a name began to be read, in epoch milliseconds. */
  readonly #reading = new Map<string, number>();
  #characters = 0;

  /** Number of values. */
  get size(): number {
    return this.#kept.size;
  }

  /**
   * The kept value, or one that is read now. If the read fails, the kept value replaces it for `OUTAGE_MS` after it was
   * last current. A `RolloutError` is a result of the read, not a failed read.
   */
  async get(asked: Asked, read: () => Promise<T>): Promise<T> {
    const { name, now } = asked;
    this.#dropOld(now);
    const kept = this.#keptFor(name, now, this.#isRead(name) ? SETTINGS_KEPT_MS : SETTINGS_RENEWED_MS);
    if (kept !== undefined) return kept.value;
    if (this.#isRead(name)) {
      const from = Date.now();
      while (this.#isRead(name) && Date.now() - from < READ_WAIT_MS) await scheduler.wait(LOOK_MS);
      const other = this.#keptFor(name, now, SETTINGS_KEPT_MS);
      if (other !== undefined) return other.value;
    }
    const begun = Date.now();
    this.#reading.delete(name);
    this.#reading.set(name, begun);
    try {
      return await this.#getNow(asked, read);
    } finally {
      if (this.#reading.get(name) === begun) this.#reading.delete(name);
    }
  }

  #keptFor(name: string, now: number, ms: number): Kept<T> | undefined {
    const known = this.#kept.get(name);
    return known !== undefined && now - known.currentAt < ms ? known : undefined;
  }

  /** If a reader was killed, its read counts for as long as others wait for it. */
  #isRead(name: string): boolean {
    return Date.now() - (this.#reading.get(name) ?? 0) < READ_WAIT_MS;
  }

  async #getNow(asked: Asked, read: () => Promise<T>): Promise<T> {
    const { env, orgId, name, now } = asked;
    const known = this.#kept.get(name);
    const age = now - (known?.currentAt ?? 0);
    const { version, at } = await versions.of(env, orgId, now);
    if (known !== undefined && isCurrent(known, version, now)) {
      this.#renew(name, known, at);
      return known.value;
    }
    try {
      return await this.#read(asked, version, read);
    } catch (thrown) {
      if (thrown instanceof RolloutError) this.forget(name);
      else if (known !== undefined && age < OUTAGE_MS) return known.value;
      throw thrown;
    }
  }

  #renew(name: string, known: Kept<T>, at: number): void {
    known.currentAt = at;
    // It may have been forgotten, or read again, meanwhile.
    if (this.#kept.get(name) === known) this.#keep(name, known);
  }

  async #read({ name, now }: Asked, version: string | null, read: () => Promise<T>): Promise<T> {
    const value = await read();
    const characters = name.length + (JSON.stringify(value)?.length ?? 0);
    const other = this.#kept.get(name)?.readAt ?? now;
    // Another caller began to read later and has already ended: its value is newer.
    if (other <= now) this.#keep(name, { value, characters, readAt: now, version, currentAt: now });
    return value;
  }

  /** The value is read again, also by callers that wait for a read which has begun. */
  forget(name: string): void {
    this.#reading.delete(name);
    this.#characters -= this.#kept.get(name)?.characters ?? 0;
    this.#kept.delete(name);
  }

  #keep(name: string, kept: Kept<T>): void {
    this.forget(name);
    this.#kept.set(name, kept);
    this.#characters += kept.characters;
    for (const other of this.#kept.keys()) {
      if (this.#kept.size <= ROOM.entries && this.#characters <= ROOM.characters) break;
      this.forget(other);
    }
  }

  /** Values are secret: those that cannot be used any more do not stay. */
  #dropOld(now: number): void {
    for (const [name, { currentAt }] of this.#kept) {
      if (currentAt + OUTAGE_MS > now) break;
      this.forget(name);
    }
    for (const name of this.#reading.keys()) {
      if (this.#isRead(name)) break;
      this.#reading.delete(name);
    }
  }
}

/** Whether a value is current although it is not read again. `version`: the organisation's version now. */
export function isCurrent(
  known: { readonly version: string | null; readonly readAt: number },
  version: string | null,
  now: number,
): boolean {
  return version !== null && known.version === version && now - known.readAt < SETTINGS_AGE_MS;
}
