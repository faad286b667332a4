/** A cache of environments that are built with their arguments. */

import { EnvError } from "../../contract/errors.ts";
import type { EnvironmentCode } from "../../core/protocol/environment-code.ts";

export interface ShelfLife {
  /** How many environments stay in the cache. */
  readonly kept: number;
  /** How long an invocation may use an environment after it got it. */
  readonly leaseMs: number;
  /** How long a build may take. */
  readonly buildMs: number;
  /** Called with each environment that is dropped from the cache and has something to tear down. */
  readonly retire: (environment: EnvironmentCode) => void;
}

interface Built {
  readonly made: Promise<EnvironmentCode>;
  /** Null while it is being built. */
  environment: EnvironmentCode | null;
  /** Epoch milliseconds of the last use. */
  used: number;
}

/**
 * Environments built in this isolate, each with its arguments.
 *
 * Invariants. Each use of an environment begins a lease of `leaseMs`, in which an invocation may still use it. If there
 * are more than `kept`, the least recently used one is dropped; one that has something to tear down is dropped only
 * after its lease. A build that failed or timed out is not kept: the next caller builds again. Each caller that waits
 * for a build has its own timer: a timer of the invocation that started the build would be lost if that invocation
 * ends. A caller that waited for another's build in vain builds itself. An isolate that is discarded tears nothing down, so whatever must be freed in any case must be freed in a
 * rollout's cleanup.
 */
export class BuiltEnvironments {
  readonly #life: ShelfLife;
  /** The least recently used one first. */
  readonly #built = new Map<string, Built>();

  constructor(life: ShelfLife) {
    this.#life = life;
  }

  /**
   * The environment with this name, built if needed. Rejects with the error of `build`, or if the build takes longer
   * than `buildMs`. `alone`: it waits for no other caller's build, which ends without an answer if its invocation does.
   */
  async get(name: string, build: () => Promise<EnvironmentCode>, now: number, alone = false): Promise<EnvironmentCode> {
    const known = this.#built.get(name);
    const built: Built =
      known === undefined || (alone && known.environment === null)
        ? { made: build(), environment: null, used: now }
        : known;
    built.used = now;
    // Move it to the end: it is now the most recently used.
    this.#built.delete(name);
    this.#built.set(name, built);
    this.#makeRoom(now);
    try {
      built.environment = await inTime(built.made, this.#life.buildMs);
      return built.environment;
    } catch (thrown) {
      if (this.#built.get(name) === built) this.#built.delete(name);
      // The invocation that began this build may have ended.
      if (built === known && thrown instanceof LateBuildError) return await this.get(name, build, now, true);
      throw thrown;
    }
  }

  has(name: string): boolean {
    return (this.#built.get(name)?.environment ?? null) !== null;
  }

  #makeRoom(now: number): void {
    const { kept, leaseMs, retire } = this.#life;
    for (const [name, { environment, used }] of this.#built) {
      if (this.#built.size <= kept) return;
      if (environment === null) continue;
      const holds = environment.description.tearsDown;
      if (holds && now - used < leaseMs) continue;
      this.#built.delete(name);
      if (holds) retire(environment);
    }
  }
}

class LateBuildError extends EnvError {}

export async function inTime<T>(made: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new LateBuildError(`its build did not finish within ${ms / 1000} s`));
  }, ms);
  try {
    return await Promise.race([made, late]);
  } finally {
    clearTimeout(timer);
  }
}
