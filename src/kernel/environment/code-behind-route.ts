/**
 * Runs environment code for a route: building an environment, counting its rows. If that ends the process, no run
 * records it. So it has its own kind of quarantine (quarantine.ts), stored in R2.
 *
 * Invariants. The work waits until the boot is complete, and does not run while quarantined work computes. If nothing
 * died, nothing is written. Work that was recorded in two deaths is refused while deaths continue, or until its code
 * changes.
 */
import { EnvError } from "../../contract/errors.ts";
import { canonicalJson, type JsonObject } from "../../contract/json.ts";
import type { VersionedEnvironment } from "../../core/protocol/environment-code.ts";
import { sha256Hex } from "../kit/secrets.ts";
import {
  deathsOf,
  GIVEN_UP,
  lastEnd,
  MOST_DEATHS,
  type NamedEntry,
  type Names,
  outsideQuarantine,
  Quarantine,
} from "./quarantine.ts";

/** The result of `work`, or the error that it is not tried again. Rejects as `work` does. */
export async function behindRoute<T>(
  env: Env,
  { id, digest }: Pick<VersionedEnvironment, "id" | "digest">,
  args: JsonObject,
  work: () => Promise<T>,
): Promise<T | EnvError> {
  if ((await lastEnd(env)).deaths === 0) return await outsideQuarantine("", work);
  const key = `org/platform/builds/${sha256Hex(`${id} ${digest} ${canonicalJson(args)}`)}`;
  const quarantine = new Quarantine(env, () => new StoredNames(env.STORE), key);
  try {
    const done = await quarantine.run(work);
    return done === GIVEN_UP ? new EnvError(stopsPlatform(id)) : done;
  } finally {
    await quarantine.end();
  }
}

function stopsPlatform(id: string): string {
  return `building ${id} crashed or hung the platform several times: it is not tried again`;
}

/** Each entry is an object in the store without a body. */
export class StoredNames implements Names<string> {
  readonly #store: R2Bucket;

  constructor(store: R2Bucket) {
    this.#store = store;
  }

  async admitToQuarantine(key: string, boot: string, died: boolean): Promise<{ deaths: number } | null> {
    const deaths = deathsOf(await this.#find(key), { boot, died });
    const isGivenUp = deaths >= MOST_DEATHS;
    await this.#name(key, { deaths, boot: isGivenUp ? null : boot });
    return isGivenUp ? null : { deaths };
  }

  async clear(key: string, ended: boolean): Promise<void> {
    const deaths = ended ? 0 : ((await this.#find(key))?.deaths ?? 0);
    if (deaths === 0) await this.#store.delete(key);
    else await this.#name(key, { deaths, boot: null });
  }

  async #find(key: string): Promise<NamedEntry | null> {
    const known = await this.#store.head(key);
    if (known === null) return null;
    const { deaths, boot } = known.customMetadata ?? {};
    return { deaths: Number(deaths ?? 0), boot: boot ?? null };
  }

  async #name(key: string, { deaths, boot }: NamedEntry): Promise<void> {
    const customMetadata = { deaths: String(deaths), ...(boot !== null && { boot }) };
    await this.#store.put(key, "", { customMetadata });
  }
}
