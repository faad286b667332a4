/**
 * Housekeeping of a run: it copies the run's state to D1, notifies webhooks, and frees rollouts long after the run's
 * end. The row in D1 is a copy that is overwritten each time, so an interrupted write is repeated.
 */
import { canonicalJson } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { databaseOf } from "../db/database.ts";
import { updateRun } from "../db/runs.ts";
import { idsOf, logError } from "../kit/log.ts";
import { rolloutShard } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { StoredStanding } from "../messages/rpc.ts";
import type { LiveView } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import { ROW_EVERY_MS, type RunClock, rowDueAt, rowEveryMs } from "./alarm.ts";
import { RunNotifier } from "./announcements.ts";
import { deadlineOf, statusOf } from "./control.ts";
import { ReleaseNotifier } from "./releases.ts";
import type { LiveViews } from "./report.ts";
import type { RunStore } from "./store.ts";

/** Storage of finished rollouts is freed this long after the run's end. Starts expire long before. */
const FREE_AFTER_MS = 24 * 3600_000;
const FREE_AGAIN_MS = 3600_000;

type HousekeepingClock = Pick<
  RunClock,
  | "now"
  | "askAt"
  | "rowStaleAt"
  | "rowTriedAt"
  | "rowEveryMs"
  | "rowFailures"
  | "notifyAt"
  | "releaseAt"
  | "freeAt"
  | "deadlineAt"
>;

export class RunHousekeeping {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #views: LiveViews;
  readonly #now: () => number;
  readonly #telling: RunNotifier;
  readonly #releases: ReleaseNotifier;
  #rowTriedAt = 0;
  /** Since when the row is out of date, as this instance knows; null if it is not. */
  #rowStaleAt: number | null = null;
  #rowFailures = 0;
  #freeAgainAt = 0;

  constructor(env: Env, store: RunStore, views: LiveViews, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#views = views;
    this.#now = now;
    this.#telling = new RunNotifier(env, store.announcements, (spec) => views.of(spec), now);
    this.#releases = new ReleaseNotifier(env, store.lostReservations, now);
  }

  /** The next change is written to D1 at once. */
  writeRowSoon(): void {
    this.#rowTriedAt = 0;
    this.#rowStaleAt = 0;
  }

  /** Called when an alarm rings. If another instance set it, it may be the time at which the row is due. */
  noteAlarm(): void {
    if (!this.#store.head().row_current) this.#rowStaleAt ??= 0;
  }

  /** The row in D1 is not as it was written last. */
  rowIsStale(): void {
    this.#store.saveHead({ ...this.#store.head(), row_current: false });
    this.writeRowSoon();
  }

  /** Whether the row has the run's current state. */
  isInRow(spec: RunSpec, stored: StoredStanding): boolean {
    const { status, counts, dead_letters, settled_at } = this.#views.standing(spec);
    const { stored_bytes } = this.#store.head();
    const standing = { status, counts: { ...counts }, dead_letters, stored_bytes, finished_at: settled_at };
    return canonicalJson(standing) === canonicalJson({ ...stored, counts: stored.counts && { ...stored.counts } });
  }

  clock(spec: RunSpec): HousekeepingClock {
    const head = this.#store.head();
    this.#rowStaleAt = head.row_current ? null : (this.#rowStaleAt ?? this.#now());
    return {
      now: this.#now(),
      askAt: this.#store.nextAskAt(),
      deadlineAt: deadlineOf(spec, head),
      rowStaleAt: this.#rowStaleAt,
      rowTriedAt: this.#rowTriedAt,
      rowEveryMs: statusOf(head) === head.row_status ? rowEveryMs(this.#now() - spec.created_at) : ROW_EVERY_MS,
      rowFailures: this.#rowFailures,
      notifyAt: this.#telling.nextAt(),
      releaseAt: this.#releases.nextAt(),
      freeAt: this.#freeAt(),
    };
  }

  async writeRow(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const due = rowDueAt(this.clock(spec));
    if (due === null || due > this.#now()) return;
    try {
      await this.#views.storeReport(spec);
      await writeRow(this.#env, this.#store, spec, () => this.#views.of(spec), subrequests);
      this.#rowFailures = 0;
    } catch (thrown) {
      this.#rowFailures += 1;
      logError("row of the run", idsOf(spec), thrown);
    }
    this.#rowTriedAt = this.#now();
  }

  /** Notifies webhooks of events, and the audit log of released reservations. Never throws. */
  async tell(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    try {
      await this.#views.storeReport(spec);
    } catch (thrown) {
      logError("report of the run", idsOf(spec), thrown);
    }
    await this.#telling.tell(spec, subrequests);
    await this.#releases.tell(spec, subrequests);
  }

  async free(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const freeAt = this.#freeAt();
    if (freeAt === null || freeAt > this.#now()) return;
    // Set first: after any failure below the next try is in an hour, not at once.
    this.#freeAgainAt = this.#now() + FREE_AGAIN_MS;
    if (await freeSlice(this.#env, this.#store, spec, subrequests)) this.#freeAgainAt = 0;
  }

  #freeAt(): number | null {
    const { settled_at, freed, hosts: shards } = this.#store.head();
    if (settled_at === null || freed === shards) return null;
    return Math.max(settled_at + FREE_AFTER_MS, this.#freeAgainAt);
  }
}

/** Frees the next objects. False: a report of one of them is not acknowledged yet, so the slice must be tried again. */
async function freeSlice(env: Env, store: RunStore, spec: RunSpec, subrequests: Subrequests): Promise<boolean> {
  // A retry in the meantime gets objects beyond those that are freed.
  store.shards.forget();
  const { freed, hosts: shards } = store.head();
  const count = Math.min(LIMITS.sliceObjects, shards - freed);
  const next = Array.from({ length: count }, (_, index) => freed + 1 + index);
  const done = await subrequests.objectAll(next, (shard) => rolloutShard(env, spec.scope, spec.run_id, shard).free());
  if (done.includes(false)) return false;
  store.saveHead({ ...store.head(), freed: freed + count });
  return true;
}

/** Writes the run's current state to its row in D1. */
export async function writeRow(
  env: Env,
  store: RunStore,
  spec: RunSpec,
  view: () => LiveView,
  subrequests: Subrequests,
): Promise<void> {
  const { status, error, counts, report, dead_letters, settled_at } = view();
  const written = store.head();
  const { stored_bytes } = written;
  const changes = { status, error, counts, report, dead_letters, finished_at: settled_at, stored_bytes };
  await subrequests.fetch(() => updateRun(databaseOf(env), spec.scope, spec.run_id, changes));
  const head = store.head();
  // Only now, and only if nothing changed meanwhile: after a kill in between, the row must be written again.
  if (head === written) store.saveHead({ ...head, row_current: true, row_status: status });
  else if (head.row_status !== status) store.saveHead({ ...head, row_status: status });
}
