/** Environments as they are built, kept, and let go. */

import { EnvError } from "../../contract/errors.ts";
import { type AnyEnvironment, holdsSomething } from "../../core/environments/any-environment.ts";

export interface ShelfLife {
  readonly kept: number;
  readonly leaseMs: number;
  /** How long a build is waited for. */
  readonly buildMs: number;
  /** Told of each one that nobody gets any more. */
  readonly retire: (environment: AnyEnvironment) => void;
}

interface Built {
  readonly made: Promise<AnyEnvironment>;
  /** Null while it is being built. */
  environment: AnyEnvironment | null;
  /** Epoch milliseconds of the last use. */
  used: number;
}

/**
 * Environments built in this isolate, each with its arguments, for whoever asks next.
 *
 * Invariants. What is asked for is under lease for as long as an invocation may hold it. Beyond `kept` the one that was
 * used longest ago goes, and one that has something to tear down no sooner than its lease is over. A build that failed, or
 * that somebody waited for in vain, is not remembered: the next one who asks builds anew. Each who waits has a timer of its
 * own, since the invocation that began a build may be gone. An isolate that is thrown away tears nothing down: what must be freed for sure belongs to a rollout's
 * cleanup.
 */
export class BuiltEnvironments {
  readonly #life: ShelfLife;
  /** The one used longest ago first. */
  readonly #built = new Map<string, Built>();

  constructor(life: ShelfLife) {
    this.#life = life;
  }

  /** The one of this name, built when there is none. Rejects with what `build` rejects with, or when that takes too long. */
  async get(name: string, build: () => Promise<AnyEnvironment>, now: number): Promise<AnyEnvironment> {
    const built = this.#built.get(name) ?? { made: build(), environment: null, used: now };
    built.used = now;
    // Now the last one used.
    this.#built.delete(name);
    this.#built.set(name, built);
    this.#makeRoom(now);
    try {
      built.environment = await inTime(built.made, this.#life.buildMs);
      return built.environment;
    } catch (thrown) {
      if (this.#built.get(name) === built) this.#built.delete(name);
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
      const holds = holdsSomething(environment);
      if (holds && now - used < leaseMs) continue;
      this.#built.delete(name);
      if (holds) retire(environment);
    }
  }
}

export async function inTime<T>(made: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new EnvError(`its build did not finish within ${ms / 1000} s`));
  }, ms);
  try {
    return await Promise.race([made, late]);
  } finally {
    clearTimeout(timer);
  }
}
