/**
 * How rollouts stand that a run asks, one slice of them. An object that fails says nothing about its rollout, unless its
 * storage is damaged: then it will never answer. A disk that is full, or files that run out, look the same from here but
 * hit every object that is opened, so one that nobody ever used is opened first.
 */

import type { RolloutRpc } from "../contract/rpc.ts";
import type { RolloutEntry } from "../contract/run-records.ts";
import type { RolloutStanding, RunSpec } from "../contract/wire.ts";
import { logError } from "../kit/log.ts";
import { rolloutObject } from "../kit/names.ts";
import { isUnreadable } from "../kit/storage-faults.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Heard } from "./sweep.ts";

/** No rollout has this id. It is out of memory again before the next slice: finished objects leave at once. */
const NOBODY = "nobody";

export class Standings {
  readonly #env: Env;
  readonly #spec: RunSpec;
  readonly #subrequests: Subrequests;
  #opens: Promise<boolean> | null = null;

  constructor(env: Env, spec: RunSpec, subrequests: Subrequests) {
    this.#env = env;
    this.#spec = spec;
    this.#subrequests = subrequests;
  }

  async of({ id, carries }: RolloutEntry, ask: (rollout: RolloutRpc) => Promise<RolloutStanding>): Promise<Heard> {
    // One that takes over another's trajectory has no object: whoever starts it reports for it.
    if (this.#spec.rescore !== undefined || carries !== null) return { state: "unknown" };
    try {
      return await ask(rolloutObject(this.#env, this.#spec.scope, id));
    } catch (thrown) {
      logError("rollout does not answer", id, thrown);
      const damaged = isUnreadable(thrown) && (await this.#othersOpen());
      return { state: damaged ? "unreadable" : "unreachable" };
    }
  }

  #othersOpen(): Promise<boolean> {
    this.#opens ??= this.#open();
    return this.#opens;
  }

  async #open(): Promise<boolean> {
    try {
      const nobody = rolloutObject(this.#env, this.#spec.scope, NOBODY);
      await this.#subrequests.object(() => nobody.read());
      return true;
    } catch (thrown) {
      logError("no object opens", this.#spec.run_id, thrown);
      return false;
    }
  }
}
