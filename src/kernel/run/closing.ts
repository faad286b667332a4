/**
 * The end of a run that is deleted. It is cancelled and can no longer be read; what is in flight ends as after any
 * cancel. Its storage is freed when none of its messages can still be on the way.
 *
 * Invariants. A closed run dispatches nothing, compacts nothing and accepts no retry, so nothing new is written for it
 * once it is quiet. It is freed only after its organisation's ledger has all of it. A run that was freed, or closed
 * before it was created, never begins anything, even if a message arrives late.
 */

import { Tombstone } from "../kit/tombstone.ts";
import type { Closing } from "../messages/rpc.ts";
import type { RunSpec } from "../messages/wire.ts";
import { requestCancel } from "./accounting.ts";
import type { RunAccount } from "./charges.ts";
import type { RunStore } from "./store.ts";

/** The longest time a consumer may work on a message: production ends it after 15 minutes. Starts expire earlier. */
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

  /** True for a run that can no longer be read or changed. */
  get isClosed(): boolean {
    return this.isFreed || this.#store.head().closed_at !== null;
  }

  /** `spec` null: the run was never created, and never will be. */
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
    const { settled_at, closed_at, hosts: shards, finished, segmented } = this.#store.head();
    // Charges that are not in the ledger and events that are not delivered are only in its rows.
    if (settled_at === null || !this.#isNotified(spec)) return { quiet_at: null, hosts: shards };
    const folded = finished === segmented && this.#store.silentSegments(Number.MAX_SAFE_INTEGER, 1).length === 0;
    const last = folded ? settled_at : Math.max(settled_at, closed_at ?? now);
    return { quiet_at: last + QUIET_AFTER_MS, hosts: shards };
  }

  /** Marks the object busy until `work` is done: meanwhile nothing is freed. */
  async during(work: () => Promise<void>): Promise<void> {
    if (this.isFreed) return;
    this.#underWay += 1;
    try {
      await work();
    } finally {
      this.#underWay -= 1;
    }
  }

  /** False: the object is busy, or the ledger does not have everything yet. */
  async free(now: number): Promise<boolean> {
    const spec = this.#store.spec();
    if (this.#underWay > 0 || (spec !== null && !this.#isNotified(spec))) return false;
    const freed = this.#tombstone.set(now);
    this.#store.forget();
    await freed;
    return true;
  }

  /** True if the ledger has all of it, all events are sent to webhooks, and all releases are in the audit log. */
  #isNotified(spec: RunSpec): boolean {
    const { announcements, lostReservations } = this.#store;
    return this.#settling.isSettled(spec) && !announcements.some && lostReservations.unnotified === null;
  }

  decay(now: number): Promise<boolean> {
    return this.#tombstone.decay(now);
  }
}
