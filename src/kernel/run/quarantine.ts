/**
 * A run's part of the quarantine (quarantine.ts): the named work, the process that named it, and the number of deaths in
 * which it was named.
 *
 * Invariants. A name that is still stored when another process asks was named when its process ended. That counts as a
 * death only if the process died, not if it was stopped in order. A run in which three items were given up ends: each
 * of its other rollouts might kill the process as well.
 */

import { deathsOf, lastEnd, MOST_DEATHS, stoppedPlatform } from "../environment/quarantine.ts";
import type { QuarantineKey, RunSpec } from "../messages/wire.ts";
import { giveUp } from "./accounting.ts";
import { STOPS_PLATFORM } from "./control.ts";
import { waitingRows } from "./scoring-groups.ts";
import type { RunStore } from "./store.ts";

const MOST_GIVEN_UP = 3;

export class RunQuarantine {
  readonly #env: Env;
  readonly #store: RunStore;
  /** The last rollout dispatched before this instance; later ones began in this process. */
  #upTo = 0;

  constructor(env: Env, store: RunStore) {
    this.#env = env;
    this.#store = store;
  }

  /** Must be called once, for a run that this instance did not create. */
  resume(): void {
    this.#upTo = this.#store.lastSeq();
  }

  /** Rollouts up to this `seq` are quarantined; 0 for none. */
  async upTo(): Promise<number> {
    return (await lastEnd(this.#env)).deaths > 0 ? this.#upTo : 0;
  }

  /** Stores the name with this process. Null: the work is given up, and the caller must not begin it. */
  admitToQuarantine(
    spec: RunSpec,
    key: QuarantineKey,
    by: { readonly boot: string; readonly died: boolean },
    now: number,
  ): { deaths: number } | null {
    const store = this.#store;
    return store.transaction(() => {
      if (isStopped(store)) {
        this.#end(spec, key, now);
        return null;
      }
      const known = store.quarantine.find(key);
      const deaths = deathsOf(known, by);
      if (deaths < MOST_DEATHS) {
        store.quarantine.name(key, by.boot, deaths);
        return { deaths };
      }
      // The record stays: the caller may die before its work has ended.
      store.quarantine.name(key, null, deaths);
      if ((known?.deaths ?? 0) < MOST_DEATHS) countGivenUp(store, spec);
      this.#end(spec, key, now);
      return null;
    });
  }

  /** The work waits for a call, or (`ended`) has ended: earlier deaths count no more after the end. */
  clear(key: QuarantineKey, ended: boolean): void {
    const known = this.#store.quarantine.find(key);
    if (known === null) return;
    if (ended || known.deaths === 0) this.#store.quarantine.drop(key);
    else this.#store.quarantine.name(key, null, known.deaths);
  }

  /** A rollout that has an object is ended by that object, with its trajectory so far. */
  #end(spec: RunSpec, key: QuarantineKey, now: number): void {
    const [kind, ...numbers] = key.split("/");
    const [first = 0, slot = 0, attempt = 0] = numbers.map(Number);
    if (kind === "start") {
      const row = this.#store.rollout({ group: first, slot, attempt });
      const message = stoppedPlatform("its task was being built");
      const ending = {
        from: "running",
        outcome: "failed",
        reason: "environment",
        message,
      } as const;
      if (row !== null) giveUp(this.#store, spec, row, ending, now);
    }
    if (kind === "unit") {
      const message = stoppedPlatform("it was being scored");
      const ending = { from: "scoring", outcome: "unscored", reason: "scorer", message } as const;
      for (const row of waitingRows(this.#store, spec, first)) giveUp(this.#store, spec, row, ending, now);
    }
  }
}

function isStopped(store: RunStore): boolean {
  const { stop } = store.head();
  return stop?.kind === "fail" && stop.code === STOPS_PLATFORM;
}

function countGivenUp(store: RunStore, { environment: { id, version } }: RunSpec): void {
  const head = store.head();
  const given_up = head.given_up + 1;
  const message = `${given_up} of its rollouts crashed or hung the platform several times, so no more are started: fix ${id}@${version}`;
  const stop = { kind: "fail", code: STOPS_PLATFORM, message } as const;
  const goesOn = given_up < MOST_GIVEN_UP || head.stop !== null;
  store.saveHead({ ...head, given_up, row_current: false, ...(!goesOn && { stop }) });
}
