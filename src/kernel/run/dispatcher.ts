/**
 * Moves a run forward: dispatches rollouts into the window, sends messages to the queues, and does the slices of its
 * alarm. It reads and writes the store. What fails now (a queue that refuses, an object that does not answer) is
 * retried by the next reconciliation.
 */
import type { CancelReason } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../contract/run.ts";
import { rolloutId } from "../../core/ids.ts";
import { UPGRADING } from "../account/lease-state.ts";
import { liveQuota, noteRunning, objectsEach, quotaReason } from "../environment/live-objects.ts";
import { idsOf, logError } from "../kit/log.ts";
import { rolloutShard } from "../kit/names.ts";
import { macWithin } from "../kit/secrets.ts";
import { isPassing, isUnreadable, STORAGE_FULL, storageIsFull } from "../kit/storage-faults.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Need } from "../messages/endpoint-wire.ts";
import type { RolloutRpc } from "../messages/rpc.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutSlot, RolloutStanding, RunSpec } from "../messages/wire.ts";
import { cutSegment, dispatch, FIRST_ASK_MS, giveUp, SCORING_DEADLINE_MS } from "./accounting.ts";
import { capStatusReason, startableWithin, Wakes } from "./cap.ts";
import { cancelReasonOf, maxConcurrentOf, stopsAll } from "./control.ts";
import type { RunLeases, Traffic } from "./leases.ts";
import { type JudgementOrder, Outbox } from "./outbox.ts";
import { type RolloutAnswer, reconcileScoring, takeAnswer, UNREADABLE } from "./reconcile.ts";
import { remainingToBegin } from "./refusals.ts";
import { pendingOf } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** A rollout that has not started yet gets the cancel again after this time; a start under way arrives sooner. */
const NOTIFY_AGAIN_MS = 500;
const MOST_CANCELS = 2;
/** A rollout that does not answer may still run: the cancel is repeated for minutes before the rollout is given up. */
const MOST_UNREACHABLE_CANCELS = 12;
const LONGEST_TELL_MS = 60_000;
const GIVEN_UP = { from: "running", outcome: "cancelled" } as const;

/** Opens groups beyond the planned ones: a training run opens them while it runs, other runs open none. */
export interface Openings {
  /** Rollouts of groups that may be opened now, in whole groups; if groups differ in size, at least as many. */
  openable(spec: RunSpec): number;
  /** Opens as many groups as that many more rollouts need. Must be called inside a transaction. */
  open(spec: RunSpec, rollouts: number): void;
  /** True if more groups are expected soon: the run then keeps its leases while it has nothing to open. */
  goOn(spec: RunSpec): boolean;
}

export class Dispatcher {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #openings: Openings;
  readonly #leases: RunLeases;
  readonly #outbox: Outbox;
  readonly #wakes: Wakes;
  /** Rollouts whose objects did not open at the last question: `seq` to rollout id. */
  readonly #unreadable = new Map<number, string>();

  constructor(env: Env, store: RunStore, now: () => number, openings: Openings, leases: RunLeases) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#openings = openings;
    this.#leases = leases;
    this.#outbox = new Outbox(env, store, now);
    this.#wakes = new Wakes(env, store);
  }

  toScore(scoringGroup: number | null): void {
    if (scoringGroup !== null) this.#outbox.toScore([scoringGroup]);
  }

  toJudge(order: JudgementOrder): void {
    this.#outbox.toJudge(order);
  }

  toCompact(segment: number): void {
    this.#outbox.toCompact(segment);
  }

  /** The message with these slots was taken out of its queue. Returns true if something waited for that. */
  started(places: readonly RolloutSlot[]): boolean {
    return this.#outbox.started(places);
  }

  folded(segment: number): boolean {
    return this.#outbox.folded(segment);
  }

  /** How many rollouts may be dispatched now. */
  remaining(spec: RunSpec): number {
    const startable = this.#startable(spec);
    return startable === 0 ? 0 : Math.min(startable, this.#outbox.remainingToStart(this.#leases.messages()));
  }

  /** How many rollouts could be dispatched now if their queue had no limit. */
  #startable(spec: RunSpec): number {
    const head = this.#store.head();
    if (head.stop !== null || head.settled_at !== null || head.paused || this.#leases.isUpgrading()) return 0;
    const asked = maxConcurrentOf(spec, head);
    const funded = Math.min(this.#leases.settling.remaining(spec), LIMITS.sliceRows, remainingToBegin(spec, head));
    if (spec.rescore !== undefined) {
      // A rescored rollout calls no model and uses no object: the leases of endpoint and organisation do not apply.
      const more = Math.max(0, Math.min(asked - head.running, pendingOf(spec, head), funded));
      return startableWithin(this.#store, spec, more);
    }
    const live = liveQuota(this.#env, spec, head.running, objectsEach(spec));
    const window = Math.min(asked, live);
    const remaining = this.#leases.rolloutsRemaining();
    const more = pendingOf(spec, head) + this.#openings.openable(spec);
    const count = Math.max(0, Math.min(window - head.running, remaining, more, funded));
    return startableWithin(this.#store, spec, count);
  }

  /** Messages of the run in the shared queues, and messages that wait to be sent, without judgements. */
  traffic(spec: RunSpec): Traffic {
    return { inQueue: this.#outbox.inQueue(), waiting: this.#outbox.waiting(spec, this.#startable(spec)) };
  }

  /** Why the run waits, if neither its owner nor its endpoint is the reason; else null. */
  hindrance(spec: RunSpec): RunView["status_reason"] {
    if (storageIsFull()) return { state: "storage_full", reason: STORAGE_FULL };
    const head = this.#store.head();
    const [id] = [...this.#unreadable].flatMap(([seq, rollout]) =>
      this.#store.bySeq(seq)?.status === "running" ? [rollout] : [],
    );
    if (id !== undefined) return { state: "object_unreadable", reason: `${UNREADABLE}: ${id}` };
    const capped = capStatusReason(this.#store, spec);
    if (capped !== null) return capped;
    if (pendingOf(spec, head) === 0 && !this.#openings.goOn(spec)) return null;
    if (this.#leases.isUpgrading()) return UPGRADING;
    const unfunded = this.#leases.settling.statusReason(spec);
    if (unfunded !== null || pendingOf(spec, head) === 0 || spec.rescore !== undefined) return unfunded;
    const live = liveQuota(this.#env, spec, head.running, objectsEach(spec));
    if (head.running >= live && maxConcurrentOf(spec, head) > live) {
      return { state: "over_limit", reason: quotaReason(this.#env, live) };
    }
    return this.#leases.rolloutStatusReason() ?? this.#leases.messageStatusReason(this.#outbox.inQueue());
  }

  /** What it needs from its endpoint: a run that dispatches nothing more returns what it no longer uses. */
  need(spec: RunSpec): Need {
    const head = this.#store.head();
    const { running } = head;
    if (spec.rescore !== undefined) return { running: 0, wants: 0, more: false };
    const closed = head.stop !== null || head.settled_at !== null || head.paused;
    const pending = closed ? 0 : Math.min(this.#pending(spec), remainingToBegin(spec, head));
    const wants = Math.max(running, Math.min(maxConcurrentOf(spec, head), running + pending));
    return { running, wants: pending === 0 ? running : wants, more: pending > 0 };
  }

  /** How many rollouts are still to be dispatched. */
  #pending(spec: RunSpec): number {
    const head = this.#store.head();
    const pending = pendingOf(spec, head);
    return this.#openings.goOn(spec) ? Math.max(pending, maxConcurrentOf(spec, head) - head.running) : pending;
  }

  dispatch(spec: RunSpec): void {
    const count = this.remaining(spec);
    if (count === 0) return;
    const mac = macWithin(this.#env, spec.run_id);
    const idOf = (place: RolloutSlot) => rolloutId(spec.run_id, place, mac);
    const places = this.#store.transaction(() => {
      this.#openings.open(spec, count - pendingOf(spec, this.#store.head()));
      const opened = Math.min(count, pendingOf(spec, this.#store.head()));
      return dispatch(this.#store, spec, opened, idOf, this.#now());
    });
    this.#outbox.toStart(places);
  }

  /** Cuts ended rollouts into segments to compact. Runs before the leases are renewed, since each takes a message. */
  cutSegments(): void {
    for (;;) {
      const segment = cutSegment(this.#store, this.#now());
      if (segment === null) break;
      this.toCompact(segment);
    }
  }

  /** Reports its number of live objects, for the local quota. */
  noteRunning(spec: RunSpec): void {
    const { running, settled_at } = this.#store.head();
    const objects = settled_at === null && spec.rescore === undefined;
    noteRunning(this.#env, spec, running, !objects, objectsEach(spec));
  }

  /** Sends the collected messages. */
  async send(spec: RunSpec): Promise<void> {
    await this.#outbox.send(spec, this.#leases.messages());
  }

  /** Wakes rollouts that wait for the rest of the run's cap, so that they ask again. */
  async wakeNeedy(spec: RunSpec): Promise<void> {
    await this.#wakes.send(spec);
  }

  /** True while rollouts must still be notified to stop. */
  unnotified(): boolean {
    return this.#store.unnotified(1, stopsAll(this.#store.head())).length > 0;
  }

  /** Notifies one slice of rollouts to stop: all of a run that ends early, or those that were cancelled one by one. */
  async tell(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const rows = this.#store.unnotified(LIMITS.sliceObjects, stopsAll(this.#store.head()));
    const standings = new Standings(this.#env, spec, subrequests);
    const reasonOf = (row: RolloutEntry) => cancelReasonOf(this.#store.head(), row) ?? "user";
    // All at once: they are awake, and each stops its call before any of them has ended.
    const width = LIMITS.sliceObjects;
    const sendCancels = async ([shard, of]: readonly [number | null, RolloutEntry[]]) => {
      const orders = of.map((row) => ({ rollout_id: row.id, reason: reasonOf(row) }));
      const answer = await standings.of(shard, of, (rollouts) => rollouts.cancel(orders));
      for (const [index, row] of of.entries()) {
        this.#takeCancelAnswer(spec, this.#store.bySeq(row.seq), reasonOf(row), answer[index] ?? UNKNOWN);
      }
    };
    await subrequests.objectAll([...Map.groupBy(rows, ({ host: shard }) => shard)], sendCancels, width);
  }

  /** `row` is the current row: a rollout that reported in the meantime needs no notification. */
  #takeCancelAnswer(spec: RunSpec, row: RolloutEntry | null, reason: CancelReason, answer: RolloutAnswer): void {
    if (row?.status !== "running") return;
    const now = this.#now();
    const away = answer.state === "unreachable" || answer.state === "unavailable";
    if (answer.state === "running") {
      this.#store.setRollout(row.seq, { told: 1, misses: 0 });
    } else if (answer.state === "answered") {
      this.toScore(takeAnswer(this.#store, spec, row, answer, now).unit);
    } else if (row.misses < (away ? MOST_UNREACHABLE_CANCELS : MOST_CANCELS)) {
      const wait = away ? NOTIFY_AGAIN_MS * 2 ** row.misses : NOTIFY_AGAIN_MS;
      const ask_at = now + Math.min(LONGEST_TELL_MS, wait);
      this.#store.setRollout(row.seq, { misses: row.misses + 1, told: 1, ask_at });
    } else {
      const gone = answer.state === "unreadable" ? UNREADABLE : "its object could not be reached";
      const message = answer.state === "unknown" ? "cancelled before it started" : gone;
      this.toScore(giveUp(this.#store, spec, row, { ...GIVEN_UP, reason, message }, now));
    }
  }

  /** One slice of reconciliation: asks what is silent. */
  async reconcile(spec: RunSpec, subrequests: Subrequests): Promise<void> {
    const now = this.#now();
    const left = LIMITS.sliceObjects - subrequests.count;
    const silent = this.#store.silent(now, left);
    const scoring = silent.filter(({ status }) => status === "scoring");
    const isUnsent = (scoringGroup: number) => this.#outbox.holds(scoringGroup);
    this.#outbox.toScore(reconcileScoring(this.#store, spec, scoring, now, isUnsent));
    this.#reconcileSegments(now);
    const running = silent.filter(({ status }) => status === "running");
    const head = this.#store.head();
    const stopping = running.filter((row) => cancelReasonOf(head, row) !== null);
    this.#cancelAgain(stopping, now);
    const going = running.filter((row) => !stopping.includes(row));
    await this.#ask(spec, going, subrequests);
  }

  async #ask(spec: RunSpec, rows: readonly RolloutEntry[], subrequests: Subrequests): Promise<void> {
    const standings = new Standings(this.#env, spec, subrequests);
    await subrequests.objectAll([...Map.groupBy(rows, ({ host: shard }) => shard)], async ([shard, of]) => {
      const ids = of.map(({ id }) => id);
      const answer = await standings.of(shard, of, (rollouts) => rollouts.ask(ids));
      for (const [index, row] of of.entries()) this.#takeAnswer(spec, row, answer[index] ?? UNKNOWN);
    });
  }

  #takeAnswer(spec: RunSpec, asked: RolloutEntry, answer: RolloutAnswer): void {
    if (answer.state === "unreadable") this.#unreadable.set(asked.seq, asked.id);
    else this.#unreadable.delete(asked.seq);
    const row = this.#store.bySeq(asked.seq);
    const { unit: scoringGroup, resend } = takeAnswer(this.#store, spec, row, answer, this.#now());
    this.toScore(scoringGroup);
    if (resend && row !== null) this.#outbox.toStart([placeOf(row)]);
  }

  #reconcileSegments(now: number): void {
    for (const { segment, asks } of this.#store.silentSegments(now, LIMITS.sliceObjects)) {
      const ask_at = now + SCORING_DEADLINE_MS * 2 ** Math.min(asks, 6);
      this.#store.setSegment(segment, { asks: asks + 1, ask_at });
      this.toCompact(segment);
    }
  }

  #cancelAgain(rows: readonly RolloutEntry[], now: number): void {
    for (const { seq } of rows) {
      this.#store.setRollout(seq, { told: 0, ask_at: now + FIRST_ASK_MS });
    }
  }
}

export function placeOf(row: RolloutEntry): RolloutSlot {
  return { group: row.group_index, slot: row.slot, attempt: row.attempt };
}

const UNKNOWN = { state: "unknown" } as const;
/** No object has this number, and no rollout has this id. */
const NOBODY = { host: 0, id: "nobody" } as const;

/**
 * Asks the objects of one slice of rollouts for the state of each. A failing object says nothing about its rollouts,
 * unless its storage is damaged: then it will never answer for any of them. A full disk, or too many open files, gives
 * the same error, but for every object that is opened. To tell the two apart, an object that was never used is opened
 * first.
 */
class Standings {
  readonly #env: Env;
  readonly #spec: RunSpec;
  readonly #subrequests: Subrequests;
  #opens: Promise<boolean> | null = null;

  constructor(env: Env, spec: RunSpec, subrequests: Subrequests) {
    this.#env = env;
    this.#spec = spec;
    this.#subrequests = subrequests;
  }

  /** The states of the rollouts of one object, in the order of `rows`. */
  async of(
    shard: number | null,
    rows: readonly RolloutEntry[],
    ask: (rollouts: RolloutRpc) => Promise<RolloutStanding[]>,
  ): Promise<readonly RolloutAnswer[]> {
    // Rollouts that take over a trajectory have no object: the consumer that starts them reports for them.
    if (shard === null) return rows.map(() => UNKNOWN);
    try {
      return await ask(rolloutShard(this.#env, this.#spec.scope, this.#spec.run_id, shard, this.#spec.fleet));
    } catch (thrown) {
      const first = rows[0] && { rollout_id: rows[0].id };
      logError("rollouts do not answer", { ...idsOf({ ...this.#spec, ...first }), count: rows.length }, thrown);
      if (isPassing(this.#env, thrown)) return rows.map(() => ({ state: "unavailable" }));
      const damaged = isUnreadable(this.#env, thrown) && (await this.#othersOpen());
      return rows.map(() => ({ state: damaged ? "unreadable" : "unreachable" }));
    }
  }

  #othersOpen(): Promise<boolean> {
    this.#opens ??= this.#open();
    return this.#opens;
  }

  async #open(): Promise<boolean> {
    try {
      const nobody = rolloutShard(this.#env, this.#spec.scope, this.#spec.run_id, NOBODY.host);
      await this.#subrequests.object(() => nobody.read(NOBODY.id));
      return true;
    } catch (thrown) {
      logError("no object opens", idsOf(this.#spec), thrown);
      return false;
    }
  }
}
