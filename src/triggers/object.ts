/**
 * The Durable Object of one trigger: its deliveries, and the run that each started.
 *
 * Invariants. A delivery is on disk before its run is started, and the run's Idempotency-Key is derived from the
 * delivery. After a kill between the two, no run is lost and none is started twice, since the alarm takes up every
 * accepted delivery without a run. A repeated delivery writes nothing and gets the same run. At most
 * `LIMITS.triggerWaiting` deliveries wait. Unsigned deliveries are logged at most six times a minute. Refusals are sent
 * to webhooks. The alarm never throws. A due time of the schedule is taken as a delivery, in the write that moves to the
 * next one, so that each starts one run; all times that were missed together start one.
 */

import { LIMITS } from "../contract/limits.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { getRun } from "../kernel/db/runs.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { isAtRest, untilTheNextBoot } from "../kernel/kit/at-rest.ts";
import { backoffMs } from "../kernel/kit/backoff.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Tombstone } from "../kernel/kit/tombstone.ts";
import type { Refusal } from "../kernel/messages/refusal.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import { WaitingReaders } from "../kernel/run/pages.ts";
import { type Armed, ArmedSchedule, isSame } from "./armed.ts";
import { type AcceptRun, beginRun } from "./begin-run.ts";
import { getTrigger } from "./queries.ts";
import { RefusalEvents } from "./refusal-events.ts";
import type { DeliveryOutcome, LoggedDelivery, SignedDelivery, TriggerPlace, TriggerRpc } from "./rpc.ts";
import { DeliveryStore, type Pending } from "./store.ts";
import type { TriggerRow } from "./tables.ts";
import { verdictOf } from "./verdict.ts";

const PLACE = "place";
/** Then the alarm takes up an accepted delivery without a run: the request that accepted it may be gone. */
const TAKEN_UP_MS = 30_000;
/** A delivery is given up if its run could not be started for this long after its turn came. */
const GIVEN_UP_MS = 24 * 3600_000;
/** How long a repeat waits for the first delivery. */
const REPEAT_MS = 30_000;
const FIRST_LOOK_MS = 2000;
const LONGEST_LOOK_MS = 60_000;
const BEGUN_AT_ONCE = 20;
const UNSIGNED_A_MINUTE = 6;
const MINUTE_MS = 60_000;
/** Refusals that may pass by themselves. */
const PASSING: readonly string[] = ["rate_limited", "in_progress", "storage_full"];
const ENDED: readonly string[] = ["completed", "failed", "cancelled"];

export abstract class TriggerObject extends StoredObject implements Serves<TriggerRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  protected abstract readonly acceptRun: AcceptRun;
  readonly #store: DeliveryStore;
  readonly #tombstone: Tombstone;
  readonly #waiting = new WaitingReaders();
  /** Deliveries whose run is being started. */
  readonly #beginning = new Set<number>();
  #advancing = false;
  /** Checks in a row that found the previous run unfinished. */
  #looks = 0;
  #lookedAt = 0;
  readonly #events: RefusalEvents;
  readonly #schedule: ArmedSchedule;
  #unsigned = { minute: 0, written: 0, left: 0 };

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#store = new DeliveryStore(state.storage);
    this.#tombstone = new Tombstone(state.storage);
    this.#schedule = new ArmedSchedule(state.storage);
    this.#events = new RefusalEvents(env);
  }

  async deliver(of: TriggerPlace, delivery: SignedDelivery): Promise<DeliveryOutcome> {
    if (this.#tombstone.stands) return outcomeOf(null, false);
    const known = this.#store.known(delivery.ids);
    if (known !== null) return await this.#repeated(of, known);
    const before = this.#store.passed(delivery.ids);
    if (before !== null && comesTo(before, delivery.verdict)) return outcomeOf(before, true);
    const serial = this.#take(of, delivery);
    const taken = this.#store.find(serial);
    if (taken?.state === "refused" && taken.error !== null) await this.#notify(of, taken.error, taken.delivery_id);
    await this.#arm();
    const looked = this.now() < this.#lookedAt + FIRST_LOOK_MS;
    if (!looked && this.#store.find(serial)?.state === "waiting") await this.#advance(of);
    await this.#settled(of, serial);
    return outcomeOf(this.#store.find(serial), false);
  }

  async refused(of: TriggerPlace, error: Refusal): Promise<void> {
    if (this.#tombstone.stands) return;
    this.#sample(of, error);
    await this.#notify(of, error, null);
  }

  #sample(of: TriggerPlace, error: Refusal): void {
    const minute = Math.floor(this.now() / MINUTE_MS);
    if (minute !== this.#unsigned.minute) this.#unsigned = { ...this.#unsigned, minute, written: 0 };
    const { written, left } = this.#unsigned;
    if (written >= UNSIGNED_A_MINUTE) {
      this.#unsigned = { minute, written, left: left + 1 };
      return;
    }
    this.#unsigned = { minute, written: written + 1, left: 0 };
    this.#store.write(() => {
      this.#note(of);
      this.#store.addUnsigned(error, left, this.now());
    });
  }

  log({ before, limit }: Parameters<TriggerRpc["log"]>[0]): LoggedDelivery[] {
    return this.#tombstone.stands ? [] : this.#store.page(before, limit);
  }

  async changed(of: TriggerPlace, change: string | null = null): Promise<void> {
    if (this.#tombstone.stands) return;
    await this.#readSchedule(of, change);
    if (!this.#store.isNew) {
      this.#looks = 0;
      await this.#advance(of);
    }
    await this.#arm();
  }

  async expectChange(of: TriggerPlace, origin: string, change: string | null = null): Promise<void> {
    if (this.#tombstone.stands) return;
    this.ctx.storage.kv.put(PLACE, of);
    this.#schedule.expect(origin, change, this.now());
    await this.#arm();
  }

  async free(): Promise<void> {
    const freed = this.#tombstone.set(this.now());
    this.#store.forget();
    await freed;
    this.#waiting.wake();
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#tombstone.decay(this.now())) return;
    const of = this.ctx.storage.kv.get<TriggerPlace>(PLACE);
    if (of === undefined) return;
    try {
      if (this.#schedule.isOverdue(this.now())) await this.#readSchedule(of);
      await this.#startDue(of);
      const due = this.#store.pending("accepted", BEGUN_AT_ONCE);
      for (const { serial } of due.filter(({ try_at }) => try_at <= this.now())) await this.#begin(of, serial);
      await this.#advance(of);
    } catch (thrown) {
      logError("trigger alarm", idsOfTrigger(of), thrown);
      await this.ctx.storage.setAlarm(this.now() + LONGEST_LOOK_MS);
      return;
    }
    await this.#arm();
  }

  /** The schedule that the trigger has now. `change`: the announced change that has been made. */
  async #readSchedule(of: TriggerPlace, change: string | null = null): Promise<void> {
    const read = this.#schedule.beginRead(change, this.now());
    const trigger = await getTrigger(databaseOf(this.env), of.scope, of.trigger_id);
    if (this.#tombstone.stands) return;
    const wanted = trigger?.disabled_at === null ? trigger.schedule : null;
    this.#schedule.set(wanted, read, this.now());
  }

  /** If the schedule's time has come, starts the run, or lets it wait for the previous one. */
  async #startDue(of: TriggerPlace): Promise<void> {
    const { armed } = this.#schedule;
    const trigger = armed === null || armed.next > this.now() ? null : await this.#scheduled(of, armed);
    if (armed === null || trigger === null) return;
    // While it was read, the trigger may have been changed, or may now be being deleted: its row goes last.
    if (this.#tombstone.stands || !this.#schedule.has(armed)) return;
    const delivery = scheduledDelivery(trigger, armed);
    const serial = this.#store.write(() => {
      this.#schedule.advance(armed, this.now());
      if (this.#store.known(delivery.ids) !== null) return null;
      const taken = this.#take(of, delivery);
      // No sender repeats it, so a run that cannot be started now is tried again.
      if (this.#store.find(taken)?.state === "accepted") this.#accept(taken);
      return taken;
    });
    if (serial === null) return;
    const taken = this.#store.find(serial);
    if (taken?.state === "refused" && taken.error !== null) await this.#notify(of, taken.error, taken.delivery_id);
    await this.#begin(of, serial);
  }

  /** The trigger, if it still has this schedule. Otherwise its new one is taken over. */
  async #scheduled(of: TriggerPlace, { schedule }: Armed): Promise<TriggerRow | null> {
    const trigger = await getTrigger(databaseOf(this.env), of.scope, of.trigger_id);
    const wanted = trigger?.disabled_at === null ? trigger.schedule : null;
    if (wanted !== null && isSame(wanted, schedule)) return trigger;
    await this.#readSchedule(of);
    return null;
  }

  /** Stores the delivery, with what it has to do. */
  #take(of: TriggerPlace, { ids, event, verdict, concurrency, origin }: SignedDelivery): number {
    const now = this.now();
    return this.#store.write(() => {
      this.#note(of);
      const plain = { ids, event, filling: null, origin: null, try_at: null };
      if (verdict.kind !== "begin") {
        return this.#store.add({ ...plain, state: verdict.kind, error: errorOf(verdict) }, false, now);
      }
      const begins = { ...plain, filling: verdict.filling, origin };
      const waits = concurrency !== "allow" && this.#isBusy();
      if (!waits) {
        return this.#store.add({ ...begins, state: "accepted", error: null, try_at: now + TAKEN_UP_MS }, true, now);
      }
      if (concurrency === "queue" && this.#store.count("waiting") >= LIMITS.triggerWaiting) {
        const message = `${LIMITS.triggerWaiting} deliveries are already waiting`;
        const error: Refusal = { code: "rate_limited", message, param: null };
        return this.#store.add({ ...plain, state: "refused", error }, false, now);
      }
      const serial = this.#store.add({ ...begins, state: "waiting", error: null }, true, now);
      if (concurrency === "coalesce") this.#store.supersede(serial);
      return serial;
    });
  }

  #isBusy(): boolean {
    return this.#store.going() !== null || this.#store.count("accepted") > 0 || this.#store.count("waiting") > 0;
  }

  /** Stores the trigger for the alarm. */
  #note(of: TriggerPlace): void {
    if (this.#store.isNew) this.ctx.storage.kv.put(PLACE, of);
  }

  /** A repeated delivery: returns the outcome of the first one when it is known. */
  async #repeated(
    of: TriggerPlace,
    { serial, run_id }: { readonly serial: number; readonly run_id: string | null },
  ): Promise<DeliveryOutcome> {
    await this.#settled(of, serial);
    const found = this.#store.find(serial);
    if (found === null && run_id !== null) {
      return { run_id, duplicate: true, state: "started", reason: null, error: null };
    }
    return outcomeOf(found, true);
  }

  /** Returns when the outcome is known, or cannot be known now. */
  async #settled(of: TriggerPlace, serial: number): Promise<void> {
    const pending = this.#store.pendingOne(serial);
    if (pending === null) return;
    // The request that was about to start the run may be gone. After a failed try, the alarm retries.
    if (pending.tries === 0 && !this.#beginning.has(serial)) await this.#begin(of, serial);
    const until = this.now() + REPEAT_MS;
    while (this.#beginning.has(serial) && this.now() < until) await this.#waiting.next(until - this.now());
  }

  /** Starts the run of an accepted delivery. If the result is uncertain, the alarm tries again. */
  async #begin(of: TriggerPlace, serial: number): Promise<void> {
    const pending = this.#store.pendingOne(serial);
    if (pending === null || this.#beginning.has(serial)) return;
    this.#beginning.add(serial);
    try {
      const now = this.now();
      const run = await beginRun(this.env, of, pending, { accept: this.acceptRun, now });
      if (this.#tombstone.stands) return;
      if (run.ok) {
        this.#looks = 0;
        this.#store.started(serial, run.value);
        this.ctx.waitUntil(this.#enter(of, pending, run.value));
      } else if (!wasAnswered(pending) || !PASSING.includes(run.error.code) || !this.#again(pending)) {
        await this.#refuse(of, pending, run.error);
      }
    } catch (thrown) {
      logError("trigger began no run", idsOfTrigger(of), thrown);
      if (!this.#tombstone.stands && !this.#again(pending)) {
        const message = "no run could be started for a day";
        await this.#refuse(of, pending, { code: "internal", message, param: null });
      }
    } finally {
      this.#beginning.delete(serial);
      this.#waiting.wake();
    }
    if (!this.#tombstone.stands) await this.#arm();
  }

  async #refuse(of: TriggerPlace, { serial, delivery_id }: Pending, error: Refusal): Promise<void> {
    this.#store.refused(serial, error);
    await this.#notify(of, error, delivery_id);
  }

  /** Schedules another try. Returns false if the delivery has been tried for a day. */
  #again({ serial, tries, at, accepted_at }: Pending): boolean {
    const now = this.now();
    if (now > (accepted_at ?? at) + GIVEN_UP_MS) return false;
    this.#store.postpone(serial, now + backoffMs(tries + 1, null, String(serial)));
    return true;
  }

  /** Starts waiting deliveries whose turn has come. */
  async #advance(of: TriggerPlace): Promise<void> {
    if (this.#advancing || this.#store.count("waiting") === 0) return;
    this.#advancing = true;
    this.#lookedAt = this.now();
    try {
      const trigger = await getTrigger(databaseOf(this.env), of.scope, of.trigger_id);
      if (trigger?.concurrency === "allow") {
        for (const { serial } of this.#store.pending("waiting", BEGUN_AT_ONCE)) this.#accept(serial);
      } else if (this.#store.count("accepted") === 0 && (await this.#hasEnded(of))) {
        const [next] = this.#store.pending("waiting", 1);
        if (next !== undefined) this.#accept(next.serial);
      }
    } finally {
      this.#advancing = false;
    }
    for (const { serial } of this.#store.pending("accepted", BEGUN_AT_ONCE)) await this.#begin(of, serial);
  }

  async #notify(of: TriggerPlace, error: Refusal, deliveryId: string | null): Promise<void> {
    await this.#events.notify(of, error, deliveryId, this.now());
  }

  #accept(serial: number): void {
    this.#store.accept(serial, this.now() + TAKEN_UP_MS, this.now());
  }

  /** The previous run has ended or no longer exists. */
  async #hasEnded({ scope }: TriggerPlace): Promise<boolean> {
    const going = this.#store.going();
    if (going === null) return true;
    const record = await getRun(databaseOf(this.env), scope, going);
    if (record !== null && !ENDED.includes(record.run.status)) {
      this.#looks += 1;
      return false;
    }
    this.#looks = 0;
    if (this.#store.going() === going) this.#store.noteEnded();
    return true;
  }

  async #arm(): Promise<void> {
    const now = this.now();
    const due: number[] = [];
    const { dueAt } = this.#schedule;
    if (dueAt !== null) due.push(dueAt);
    const next = this.#store.nextTry();
    if (next !== null) due.push(next);
    const look = Math.min(LONGEST_LOOK_MS, FIRST_LOOK_MS * 2 ** Math.max(0, this.#looks - 1));
    if (this.#store.count("waiting") > 0 && next === null) due.push(now + (this.#store.going() === null ? 0 : look));
    if (due.length === 0) return;
    await this.ctx.storage.setAlarm(Math.max(now, Math.min(...due)));
  }

  /** Records the run in the audit log, since no request created it. A kill in between leaves the entry out. */
  async #enter({ scope, trigger_id }: TriggerPlace, { serial, at }: Pending, made: string): Promise<void> {
    const change = { at, who: trigger_id, action: "receiveDelivery", project_id: scope.projectId, target: trigger_id };
    try {
      const entry = await accounts().beginChange(this.env, scope.orgId, {
        ...change,
        request_id: `${trigger_id}:${serial}`,
      });
      if (entry !== null) await accounts().endChange(this.env, scope.orgId, entry, { status: 202, made });
    } catch (thrown) {
      logError("audit log", idsOfTrigger({ scope, trigger_id }), thrown);
    }
  }
}

/** The payload has the due time, in ISO 8601. The id has a dot, as no sender's id has. */
function scheduledDelivery(trigger: TriggerRow, { schedule, next, origin }: Armed): SignedDelivery {
  const due = new Date(next).toISOString();
  const verdict = verdictOf(trigger, { due, cron: schedule.cron });
  return { ids: [`schedule.${due}`], event: "schedule", verdict, concurrency: trigger.concurrency, origin };
}

/** The sender was already answered, so it does not send the delivery again. */
function wasAnswered({ tries, accepted_at }: Pending): boolean {
  return tries > 0 || accepted_at !== null;
}

/** Whether a repeat of a delivery that started no run has the same outcome. */
function comesTo({ state, error }: LoggedDelivery, verdict: SignedDelivery["verdict"]): boolean {
  if (verdict.kind === "begin" || verdict.kind !== state) return false;
  const again = errorOf(verdict);
  return again?.code === error?.code && again?.message === error?.message;
}

function errorOf(verdict: Exclude<SignedDelivery["verdict"], { readonly kind: "begin" }>): Refusal | null {
  if (verdict.kind === "refused") return verdict.error;
  return verdict.kind === "ignored" ? { code: "invalid_request", message: verdict.reason, param: "when" } : null;
}

function outcomeOf(found: LoggedDelivery | null, duplicate: boolean): DeliveryOutcome {
  if (found === null) {
    const gone: Refusal = { code: "not_found", message: "the trigger was deleted", param: null };
    return { run_id: null, duplicate, state: "refused", reason: gone.message, error: gone };
  }
  const { run_id, state, error, superseded_by } = found;
  const reason = superseded_by === null ? (error?.message ?? null) : "a later delivery replaced it";
  return { run_id, duplicate, state, reason, error: state === "refused" ? error : null };
}

function idsOfTrigger({ scope, trigger_id }: TriggerPlace) {
  return { ...idsOf({ scope }), trigger_id };
}
