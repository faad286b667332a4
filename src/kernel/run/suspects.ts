/**
 * What a run knows of its suspects (suspects.ts): who is named, by which process, and in how many deaths each was the one
 * that was named.
 *
 * Invariants. A name that stands here when another process asks was named when its process ended. It counts as a death only
 * if that process died: a stop in order counts against nobody. A run of which three were given up ends: its other rollouts
 * would each cost everybody the same.
 */

import { deathsOf, lastEnd, MOST_DEATHS, stoppedPlatform } from "../environment/suspects.ts";
import type { RunSpec, SuspectKey } from "../messages/wire.ts";
import { giveUp } from "./accounting.ts";
import { STOPS_PLATFORM } from "./control.ts";
import type { RunStore } from "./store.ts";
import { waitingRows } from "./units.ts";

const MOST_GIVEN_UP = 3;

export class RunSuspects {
  readonly #env: Env;
  readonly #store: RunStore;
  /** The last rollout that was dispatched before this instance; those behind it began in this process. */
  #upTo = 0;

  constructor(env: Env, store: RunStore) {
    this.#env = env;
    this.#store = store;
  }

  /** To be called once, for a run that this instance did not create. */
  resume(): void {
    this.#upTo = this.#store.lastSeq();
  }

  /** Rollouts up to this `seq` are suspects; 0 for none. */
  async upTo(): Promise<number> {
    return (await lastEnd(this.#env)).deaths > 0 ? this.#upTo : 0;
  }

  /** Names it, in this process. Null: it is given up, and whoever asked must not begin it. */
  accuse(
    spec: RunSpec,
    key: SuspectKey,
    by: { readonly boot: string; readonly died: boolean },
    now: number,
  ): { deaths: number } | null {
    const store = this.#store;
    return store.transaction(() => {
      if (isStopped(store)) {
        this.#end(spec, key, now);
        return null;
      }
      const known = store.suspects.find(key);
      const deaths = deathsOf(known, by);
      if (deaths < MOST_DEATHS) {
        store.suspects.name(key, by.boot, deaths);
        return { deaths };
      }
      // It stays on record: whoever asked may die before what it asked for has ended.
      store.suspects.name(key, null, deaths);
      if ((known?.deaths ?? 0) < MOST_DEATHS) countGivenUp(store, spec);
      this.#end(spec, key, now);
      return null;
    });
  }

  /** It awaits the outside, or (`ended`) it is over: what it did in deaths before counts no more then. */
  clear(key: SuspectKey, ended: boolean): void {
    const known = this.#store.suspects.find(key);
    if (known === null) return;
    if (ended || known.deaths === 0) this.#store.suspects.drop(key);
    else this.#store.suspects.name(key, null, known.deaths);
  }

  /** A rollout that has an object ends itself, with what it has so far. */
  #end(spec: RunSpec, key: SuspectKey, now: number): void {
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
