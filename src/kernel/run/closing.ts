/**
 * The end of a run that is deleted. It is cancelled and read no more; what is in flight ends as after any cancel. When
 * nothing of it can be on its way any more its storage is freed.
 *
 * Invariants. A closed run dispatches nothing, folds nothing and takes no retry, so nothing new is written for it once it
 * is quiet. It is freed once the books of its organisation have all of it. One that was freed, or closed before it was ever created, begins nothing, whatever comes late.
 */

import { Tombstone } from "../kit/tombstone.ts";
import type { Closing } from "../messages/rpc.ts";
import type { RunSpec } from "../messages/wire.ts";
import { requestCancel } from "./accounting.ts";
import type { RunAccount } from "./charges.ts";
import type { RunStore } from "./store.ts";

/** As long as a consumer may still hold what it was given: production ends one after 15 minutes. A start is dropped before. */
const QUIET_AFTER_MS = 15 * 60_000;

export class RunClosing {
  readonly #store: RunStore;
  readonly #tombstone: Tombstone;
  readonly #settling: Pick<RunAccount, "isSettled">;
  #underWay = 0;

  constructor(storage: DurableObjectStorage, store: RunStore, settling: Pick<RunAccount, "isSettled">) {
    this.#store = store;
    this.#settling = settling;
    this.#tombstone = new Tombstone(storage);
  }

  get isFreed(): boolean {
    return this.#tombstone.stands;
  }

  /** True for a run that nobody may read or change any more. */
  get isClosed(): boolean {
    return this.isFreed || this.#store.head().closed_at !== null;
  }

  /** `spec` null: nobody created the run, and nobody will. */
  async close(spec: RunSpec | null, now: number): Promise<Closing> {
    if (spec === null) {
      await this.#tombstone.set(now);
      return { quiet_at: now, hosts: 0 };
    }
    if (this.#store.head().closed_at === null) {
      this.#store.transaction(() => {
        requestCancel(this.#store, spec, "user", now);
        this.#store.saveHead({ ...this.#store.head(), closed_at: now });
      });
    }
    const { settled_at, closed_at, hosts, finished, segmented } = this.#store.head();
    // What it owes, and what is still to be told, is in its rows alone.
    if (settled_at === null || !this.#isTold(spec)) return { quiet_at: null, hosts };
    const folded = finished === segmented && this.#store.silentSegments(Number.MAX_SAFE_INTEGER, 1).length === 0;
    const last = folded ? settled_at : Math.max(settled_at, closed_at ?? now);
    return { quiet_at: last + QUIET_AFTER_MS, hosts };
  }

  /** Notes that something of the object is under way until `work` is done: meanwhile nothing is freed. */
  async during(work: () => Promise<void>): Promise<void> {
    if (this.isFreed) return;
    this.#underWay += 1;
    try {
      await work();
    } finally {
      this.#underWay -= 1;
    }
  }

  /** False: something of it is under way, or not in the books yet. */
  async free(now: number): Promise<boolean> {
    const spec = this.#store.spec();
    if (this.#underWay > 0 || (spec !== null && !this.#isTold(spec))) return false;
    const freed = this.#tombstone.set(now);
    this.#store.forget();
    await freed;
    return true;
  }

  /** The books of its organisation have all of it, webhooks what happened, and the audit log what was released. */
  #isTold(spec: RunSpec): boolean {
    const { announcements, lostHolds } = this.#store;
    return this.#settling.isSettled(spec) && !announcements.some && lostHolds.untold === null;
  }

  decay(now: number): Promise<boolean> {
    return this.#tombstone.decay(now);
  }
}
