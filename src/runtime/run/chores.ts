/** What a run does beside moving forward: it tells D1 what has ended, and frees its rollouts long after its own end. */
import { LIMITS } from "../../contract/limits.ts";
import type { RunSpec } from "../contract/wire.ts";
import { logError } from "../kit/log.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { DRAIN_ROWS, drainAt, type RunClock } from "./alarm.ts";
import { freeSlice } from "./freeing.ts";
import { drain } from "./outbox.ts";
import type { LiveViews } from "./report.ts";
import type { RunStore } from "./store.ts";

/** Storage of finished rollouts is freed this long after the run's end; a start is dropped long before. */
const FREE_AFTER_MS = 24 * 3600_000;
const FREE_AGAIN_MS = 3600_000;

type ChoreClock = Pick<RunClock, "now" | "undrained" | "lastDrainAt" | "drainFailures" | "rowStale" | "freeAt">;

export class RunChores {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #views: LiveViews;
  readonly #now: () => number;
  #lastDrainAt = 0;
  #drainFailures = 0;
  #freeAgainAt = 0;

  constructor(env: Env, store: RunStore, views: LiveViews, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#views = views;
    this.#now = now;
  }

  /** D1 is told at once of what changes now. */
  drainSoon(): void {
    this.#lastDrainAt = 0;
  }

  clock(): ChoreClock {
    const { finished, drained, row_current } = this.#store.head();
    return {
      now: this.#now(),
      undrained: finished - drained,
      lastDrainAt: this.#lastDrainAt,
      drainFailures: this.#drainFailures,
      rowStale: !row_current,
      freeAt: this.#freeAt(),
    };
  }

  async drain(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    for (let batches = 0; batches < LIMITS.sliceRows / DRAIN_ROWS; batches += 1) {
      const due = drainAt(this.clock());
      if (due === null || due > this.#now()) return;
      try {
        await drain(this.#env, this.#store, spec, () => this.#views.of(spec), subrequests);
        this.#drainFailures = 0;
      } catch (thrown) {
        this.#drainFailures += 1;
        logError("drain", spec.run_id, thrown);
      }
      this.#lastDrainAt = this.#now();
    }
  }

  async free(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const freeAt = this.#freeAt();
    if (freeAt === null || freeAt > this.#now()) return;
    // Set first: whatever goes wrong below is tried again in an hour, not at once.
    this.#freeAgainAt = this.#now() + FREE_AGAIN_MS;
    if (await freeSlice(this.#env, this.#store, spec, subrequests)) this.#freeAgainAt = 0;
  }

  #freeAt(): number | null {
    const { settled_at, freed } = this.#store.head();
    if (settled_at === null || freed === -1 || this.#store.spec()?.rescore) return null;
    return Math.max(settled_at + FREE_AFTER_MS, this.#freeAgainAt);
  }
}
