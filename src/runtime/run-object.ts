/**
 * One run, one object: the ledger of its rollouts and the clock that keeps them moving.
 *
 * Invariants. It is called at most three times per rollout and never per turn. What came in is on disk before anyone
 * hears of it; what must be sent is sent after, and whatever a kill swallows the sweep sends again. A fresh instance
 * (maybe a restart) asks everything in flight once. Calls that only change rows are answered at once; dispatch and
 * sends are gathered for a few milliseconds, so that a burst of answers costs one batch. The alarm never throws.
 */

import { DurableObject } from "cloudflare:workers";
import { LIMITS } from "../core/limits.ts";
import { finishedPage, recordIn } from "./finished-page.ts";
import { noteRunning } from "./live-objects.ts";
import { logError } from "./log.ts";
import { rolloutObject } from "./names.ts";
import type { FinishedPage, RunRpc, Serves } from "./rpc.ts";
import { DRAIN_ROWS, drainAt, nextRunAlarm, type RunClock } from "./run-alarm.ts";
import {
  cancelOne,
  cancelReasonOf,
  deadlineOf,
  passDeadline,
  retry,
  setMaxConcurrent,
  setPaused,
} from "./run-control.ts";
import { answer, appendEvent, cutSegment, fold, requestCancel, score } from "./run-ledger.ts";
import { drain } from "./run-outbox.ts";
import { RunPermits } from "./run-permits.ts";
import { placeOf, RunPump } from "./run-pump.ts";
import { type AuditRow, auditRows, type RunRecords, recordsOf } from "./run-records.ts";
import { type LiveView, LiveViews } from "./run-report.ts";
import type { RolloutEntry, RolloutRecord, SegmentEntry } from "./run-schema.ts";
import { RunStore, type StoredEvent } from "./run-store.ts";
import { Subrequests } from "./subrequests.ts";
import type {
  Member,
  Place,
  RetryOrder,
  RetryRefusal,
  RolloutReport,
  RunMessage,
  RunSpec,
  ScoredMember,
  Starter,
  Unit,
} from "./wire.ts";

/** How long answers are gathered before the next dispatch and sends leave. */
const GATHER_MS = 10;
const PROGRESS_EVERY_MS = 1000;
const EVENTS_PER_READ = 1000;
/** Storage of finished rollouts is freed this long after the run's end; a start is dropped long before. */
const FREE_AFTER_MS = 24 * 3600_000;
const FREE_AGAIN_MS = 3600_000;

export class RunObject extends DurableObject<Env> implements Serves<RunRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly #store: RunStore;
  readonly #pump: RunPump;
  readonly #permits: RunPermits;
  readonly #views: LiveViews;
  #asked = false;
  #gathering = false;
  #armedAt: number | null = null;
  #waiters: (() => void)[] = [];
  #lastDrainAt = 0;
  #drainFailures = 0;
  #lastProgressAt = 0;
  #freeAgainAt = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new RunStore(ctx.storage);
    this.#pump = new RunPump(env, this.#store, () => this.now());
    this.#permits = new RunPermits(env, this.#store, () => this.now());
    this.#views = new LiveViews(this.#store, () => this.now());
  }

  async create(spec: RunSpec): Promise<void> {
    if (this.#store.spec() !== null) return;
    this.#store.create(spec);
    this.#asked = true;
    await this.#flush(spec);
  }

  admit(places: readonly Place[]): { spec: RunSpec; admitted: Starter[] } | null {
    const spec = this.#open();
    if (spec === null) return null;
    const head = this.#store.head();
    const admitted = places.flatMap((place) => {
      const row = this.#store.rollout(place);
      if (row?.status !== "running" || cancelReasonOf(head, row) !== null) return [];
      return [{ ...place, rollout_id: row.id }];
    });
    return { spec, admitted };
  }

  answered(report: RolloutReport): { known: boolean } {
    const spec = this.#open();
    if (spec === null) return { known: false };
    const { known, unit } = answer(this.#store, spec, report, this.now());
    this.#pump.toScore(unit);
    this.#gather(spec);
    return { known };
  }

  unitsToScore(units: readonly number[]): { spec: RunSpec; units: Unit[] } | null {
    const spec = this.#open();
    if (spec === null) return null;
    const waiting = units.flatMap((unit) => {
      const rows = spec.whole_groups ? this.#store.group(unit) : [this.#store.bySeq(unit)];
      const members = rows.flatMap((row) => this.#toScore(row));
      return members.length === 0 ? [] : [{ unit, members }];
    });
    return { spec, units: waiting };
  }

  scored(members: readonly ScoredMember[]): void {
    const spec = this.#open();
    if (spec === null) return;
    score(this.#store, spec, members, this.now());
    this.#gather(spec);
  }

  segmentRows(segment: number): RolloutRecord[] | null {
    if (this.#open() === null) return null;
    const entry = this.#store.segment(segment);
    if (entry === null || entry.key !== null) return null;
    const count = entry.last_seq - entry.first_seq + 1;
    return this.#store
      .finished(entry.first_seq - 1, count, null)
      .map((row) => recordIn(this.#store, row));
  }

  folded(segment: number, key: string): void {
    if (this.#open() !== null) fold(this.#store, segment, key);
  }

  async cancel(): Promise<boolean> {
    const spec = this.#open();
    if (spec === null) return false;
    requestCancel(this.#store, spec, "user", this.now());
    await this.#flush(spec);
    return true;
  }

  async pause(paused: boolean): Promise<void> {
    await this.#control(() => setPaused(this.#store, paused));
  }

  async setMaxConcurrent(rollouts: number): Promise<void> {
    await this.#control(() => setMaxConcurrent(this.#store, rollouts));
  }

  async retry(order: RetryOrder): Promise<RetryRefusal | null> {
    // The database is told at once: it lets what an ended run names be deleted.
    this.#lastDrainAt = 0;
    return await this.#control((spec) => retry(this.#store, spec, order, this.now()));
  }

  async cancelRollout(place: Place): Promise<boolean> {
    return (await this.#control(() => cancelOne(this.#store, place))) ?? false;
  }

  endpointChanged(): void {
    const spec = this.#open();
    if (spec === null) return;
    this.#permits.changed();
    this.#gather(spec);
  }

  auditRecords(): RunRecords | null {
    const spec = this.#open();
    return spec === null ? null : recordsOf(this.ctx.storage.sql, spec, this.#store.head());
  }

  auditRows(after: number): AuditRow[] {
    return this.#open() === null ? [] : auditRows(this.ctx.storage.sql, after);
  }

  view(): LiveView | null {
    const spec = this.#open();
    return spec === null ? null : this.#views.of(spec);
  }

  rollout(place: Place): RolloutRecord | null {
    const row = this.#open() === null ? null : this.#store.rollout(place);
    return row === null ? null : recordIn(this.#store, row);
  }

  segmentOf(finishSeq: number): SegmentEntry | null {
    if (this.#open() === null) return null;
    const entry = this.#store.segmentsAfter(finishSeq - 1, 1)[0];
    return entry !== undefined && entry.first_seq <= finishSeq ? entry : null;
  }

  finished(after: number, limit: number, outcome: string | null): FinishedPage | null {
    return this.#open() === null ? null : finishedPage(this.#store, after, limit, outcome);
  }

  async events(
    after: number,
    waitMs: number,
  ): Promise<{ events: StoredEvent[]; ended: boolean } | null> {
    const spec = this.#open();
    if (spec === null) return null;
    if (waitMs > 0 && this.#store.head().last_event <= after) await this.#nextEvent(waitMs);
    const stored = this.#store.events(after, EVENTS_PER_READ);
    const head = this.#store.head();
    const ended = head.settled_at !== null && (stored.at(-1)?.id ?? after) >= head.last_event;
    const oldest = stored[0];
    if (oldest === undefined || oldest.id === after + 1) return { events: stored, ended };
    // The reader is further behind than the events kept: it gets where the run stands instead.
    const { counts, status } = this.#views.of(spec);
    const snapshot = { id: oldest.id - 1, event: "snapshot" as const, data: { status, counts } };
    return { events: [snapshot, ...stored], ended };
  }

  async deadLetter(queue: string, message: RunMessage): Promise<void> {
    const spec = this.#open();
    if (spec === null) return;
    this.#store.transaction(() => {
      this.#store.addDeadLetter(queue, JSON.stringify(message), this.now());
      const head = this.#store.head();
      const dead_letters = head.dead_letters + 1;
      this.#store.saveHead({ ...head, dead_letters, row_current: false });
    });
    logError("dead letter", spec.run_id, new Error(`${queue}: ${message.kind}`));
    await this.#arm(spec);
  }

  override async alarm(): Promise<void> {
    const spec = this.#open();
    if (spec === null) return;
    this.#armedAt = null;
    try {
      const subrequests = new Subrequests();
      passDeadline(this.#store, spec, this.now());
      await this.#pump.tell(spec, subrequests);
      // While some are still to be told nothing else is done: each of them may be about to call its model.
      if (!this.#pump.untold()) await this.#tend(spec, subrequests);
    } catch (thrown) {
      logError("run alarm", spec.run_id, thrown);
    }
    await this.#flush(spec);
  }

  async #tend(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    await this.#pump.sweep(spec, subrequests);
    await this.#drain(spec, subrequests);
    await this.#free(spec, subrequests);
  }

  /** The spec, and once per instance the duty to ask whatever is in flight. */
  #open(): RunSpec | null {
    const spec = this.#store.spec();
    if (spec === null || this.#asked) return spec;
    this.#asked = true;
    if (this.#store.head().in_flight > 0) this.#store.askAll();
    this.#gather(spec);
    return spec;
  }

  /** A change somebody asked for, and at once what follows from it. Null for a run nobody created. */
  async #control<T>(change: (spec: RunSpec) => T): Promise<T | null> {
    const spec = this.#open();
    if (spec === null) return null;
    const result = change(spec);
    await this.#flush(spec);
    return result;
  }

  #toScore(row: RolloutEntry | null): Member[] {
    if (row?.status !== "scoring") return [];
    const text = this.#store.trajectory(row.seq);
    return [{ ...placeOf(row), rollout_id: row.id, digest: row.digest, text }];
  }

  #gather(spec: RunSpec): void {
    if (this.#gathering) return;
    this.#gathering = true;
    setTimeout(() => {
      this.#gathering = false;
      this.ctx.waitUntil(this.#flush(spec));
    }, GATHER_MS);
  }

  /** Dispatches what fits, sends what has gathered, wakes readers, arms the alarm. Never throws. */
  async #flush(spec: RunSpec): Promise<void> {
    await this.#permits.renew(spec, this.#pump.need(spec));
    this.#pump.dispatch(spec);
    for (;;) {
      const segment = cutSegment(this.#store, this.now());
      if (segment === null) break;
      this.#pump.toFold(segment);
    }
    this.#progress(spec);
    for (const wake of this.#waiters.splice(0)) wake();
    try {
      await this.#pump.send(spec);
    } catch (thrown) {
      // Lost sends are silent rollouts and units: the sweep sends them again.
      logError("queue send", spec.run_id, thrown);
    }
    const { running, settled_at } = this.#store.head();
    noteRunning(this.env, spec.run_id, running, settled_at !== null);
    await this.#arm(spec);
  }

  #progress(spec: RunSpec): void {
    const now = this.now();
    const settled = this.#store.head().settled_at !== null;
    if (settled || now - this.#lastProgressAt < PROGRESS_EVERY_MS) return;
    this.#lastProgressAt = now;
    const { counts, report } = this.#views.of(spec);
    const data = { counts, reward: report.reward, turns: report.turns, usage: report.usage };
    this.#store.transaction(() => appendEvent(this.#store, "run.progress", data));
  }

  async #drain(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    for (let batches = 0; batches < LIMITS.sliceRows / DRAIN_ROWS; batches += 1) {
      const due = drainAt(this.#clock(spec));
      if (due === null || due > this.now()) return;
      try {
        await drain(this.env, this.#store, spec, () => this.#views.of(spec), subrequests);
        this.#drainFailures = 0;
      } catch (thrown) {
        this.#drainFailures += 1;
        logError("drain", spec.run_id, thrown);
      }
      this.#lastDrainAt = this.now();
    }
  }

  async #free(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const freeAt = this.#freeAt();
    if (freeAt === null || freeAt > this.now()) return;
    // Set first: whatever goes wrong below is tried again in an hour, not at once.
    this.#freeAgainAt = this.now() + FREE_AGAIN_MS;
    const rows = this.#store.dispatchedAfter(this.#store.head().freed, LIMITS.sliceObjects);
    const freed = await subrequests.objectAll(rows, (row) =>
      rolloutObject(this.env, spec.scope, row.id).free(),
    );
    if (freed.includes(false)) return;
    this.#freeAgainAt = 0;
    this.#store.saveHead({ ...this.#store.head(), freed: rows.at(-1)?.seq ?? -1 });
  }

  #freeAt(): number | null {
    const { settled_at, freed } = this.#store.head();
    if (settled_at === null || freed === -1) return null;
    return Math.max(settled_at + FREE_AFTER_MS, this.#freeAgainAt);
  }

  async #arm(spec: RunSpec): Promise<void> {
    const at = nextRunAlarm(this.#clock(spec));
    if (at === null || (this.#armedAt !== null && this.#armedAt <= at)) return;
    this.#armedAt = at;
    await this.ctx.storage.setAlarm(at);
  }

  #clock(spec: RunSpec): RunClock {
    const head = this.#store.head();
    return {
      now: this.now(),
      askAt: this.#store.nextAskAt(),
      undrained: head.finished - head.drained,
      lastDrainAt: this.#lastDrainAt,
      drainFailures: this.#drainFailures,
      rowStale: !head.row_current,
      untold: this.#pump.untold(),
      canDispatch: this.#pump.room(spec) > 0,
      freeAt: this.#freeAt(),
      endpointAt: this.#permits.nextAt(this.#pump.need(spec)),
      deadlineAt: deadlineOf(spec, head),
    };
  }

  #nextEvent(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiters = this.#waiters.filter((waiter) => waiter !== wake);
        resolve();
      };
      const timer = setTimeout(wake, waitMs);
      this.#waiters.push(wake);
    });
  }
}
