/**
 * The object that plays rollouts of one run, up to `LIMITS.rolloutsPerShard` at a time. They share its storage, its
 * alarm, its connections, and the calls that start and report them. Each has its own rows, deadline, tries and end.
 *
 * Invariants. The constructor writes nothing. The first `start` creates the table; any other call about a rollout that
 * was never started answers `unknown` and writes nothing. All rollouts are played inside `alarm()`, which the runtime
 * repeats after a crash. So no far alarm is set before the handler ends, and a fresh instance continues every rollout
 * that is not over. A rollout that is due continues, whatever the others wait for, until the handler hands over to its
 * next alarm: no step begins that could end later than `ALARM_MS` after the handler began, since the platform would
 * kill it. The only exception is a rollout that was cancelled: it still closes.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { retiresAtOnce } from "../environment/live-objects.ts";
import { isAtRest, untilTheNextBoot } from "../kit/at-rest.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { type LogIds, logError } from "../kit/log.ts";
import { runOrGatherer } from "../kit/names.ts";
import { readId } from "../kit/secrets.ts";
import { isPassing } from "../kit/storage-faults.ts";
import { StoredObject } from "../kit/stored-object.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type {
  AgentCall,
  AgentFinish,
  AgentReply,
  FinishReply,
  TakenRollout,
  TakeOrder,
} from "../messages/agent-wire.ts";
import type { GatheredRpc } from "../messages/gathered.ts";
import type { Answered, RolloutRpc, Serves, StopOrder } from "../messages/rpc.ts";
import type { TurnSlice, TurnsAsk } from "../messages/turn-wire.ts";
import {
  type BudgetReply,
  type RolloutBudgetAsk,
  type RolloutReport,
  type RolloutSpec,
  type RolloutStanding,
  START_MESSAGE_LIFE_MS,
  type UnspentBudget,
} from "../messages/wire.ts";
import { ALARM_MS } from "./alarm-time.ts";
import { Debounced, reportsApartMs } from "./debounced.ts";
import { FactsTable } from "./facts.ts";
import { ShardRollout } from "./shard-rollout.ts";
import { restOf, turnSlice } from "./turn-slice.ts";

/** After this many outside calls an alarm hands over, too: production allows 10,000 per invocation. */
const ALARM_CALLS = 4000;
/** A rollout that could not even report its failure is tried again after this time. */
const BROKEN_RETRY_MS = 30_000;
/** Time after its last use, if objects are retired at once: the run's next rollouts usually come within it. */
const RETIRE_AFTER_MS = 1000;
/** About 2 ms: a rollout is read, its environment is built, and its call is made again. */
const STEPS_OF_RESUMING = 40_000;

const ROLLOUT_ENDED: AgentReply = {
  kind: "refused",
  status: 409,
  code: "rollout_ended",
  message: "the rollout has ended",
};

/** A report or a request of one rollout to its run. */
interface Sent<What> {
  readonly spec: RolloutSpec;
  readonly what: What;
}

export class RolloutObject extends StoredObject implements Serves<RolloutRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  /** How long one alarm may work; tests shorten it. */
  alarmMs = ALARM_MS;
  readonly #table: FactsTable;
  readonly #calls = new Subrequests(Number.POSITIVE_INFINITY);
  /** Every rollout that was begun here; true if it is over. Read once. */
  #begun: Map<string, boolean> | null = null;
  /** Rollouts that are not over, once they were read. */
  readonly #rollouts = new Map<string, ShardRollout>();
  readonly #playing = new Set<string>();
  /** Rollouts that this instance began or played. */
  readonly #here = new Set<string>();
  /** When waiting rollouts continue, in epoch milliseconds. A rollout neither here nor in `#playing` is due. */
  readonly #wakeAt = new Map<string, number>();
  /** The running alarm: the limits, in milliseconds and in calls, for the beginning of its last step. */
  #alarm: { readonly until: number; readonly calls: number } | null = null;
  /** Rollouts whose storage could not be read at the last try, with the error. */
  readonly #unreadable = new Map<string, unknown>();
  #changed: () => void = () => undefined;
  readonly #reports: Debounced<Sent<RolloutReport>, Answered>;
  readonly #asks: Debounced<Sent<RolloutBudgetAsk>, BudgetReply>;
  #retireLater: ReturnType<typeof setTimeout> | undefined;
  /** The number of requests being served. */
  #attending = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#table = new FactsTable(ctx.storage.sql);
    const most = () => this.#playing.size;
    const unknown = { known: false };
    const report = (sent: readonly Sent<RolloutReport>[]) => this.#run(sent).answered(sent.map(({ what }) => what));
    const passes = (thrown: unknown) => isPassing(env, thrown);
    this.#reports = new Debounced(report, most, unknown, passes, ({ what }) => reportsApartMs(what));
    const over = { ceiling: null, over: true };
    this.#asks = new Debounced((sent) => this.#run(sent).allow(sent.map(({ what }) => what)), most, over, passes);
  }

  async start(specs: readonly RolloutSpec[], sentAt: number): Promise<RolloutStanding[]> {
    const late = this.now() - sentAt > START_MESSAGE_LIFE_MS;
    const fresh = late ? [] : specs.filter(({ rollout_id }) => !this.#isBegun(rollout_id));
    try {
      for (const spec of fresh) {
        this.#rollout(spec.rollout_id).begin(spec);
        this.#all().set(spec.rollout_id, false);
        this.#here.add(spec.rollout_id);
      }
    } finally {
      // Also if a later rollout could not be begun.
      if (fresh.length > 0) await this.#attend(() => this.#wake());
    }
    const standing = ({ rollout_id }: RolloutSpec): Promise<RolloutStanding> | RolloutStanding =>
      late && !this.#isBegun(rollout_id) ? { state: "expired" } : this.#standing(rollout_id);
    return await Promise.all(specs.map(standing));
  }

  async ask(ids: readonly string[]): Promise<RolloutStanding[]> {
    const standings = await Promise.all(ids.map((id) => this.#standing(id)));
    this.#retireSoon();
    return standings;
  }

  async cancel(orders: readonly StopOrder[]): Promise<RolloutStanding[]> {
    for (const { rollout_id, reason } of orders) {
      if (this.#isUnderWay(rollout_id) && this.#isReadable(rollout_id)) await this.#rollout(rollout_id).cancel(reason);
    }
    return await this.ask(orders.map(({ rollout_id }) => rollout_id));
  }

  async askAgain(ids: readonly string[], first = false): Promise<void> {
    for (const id of ids) {
      if (this.#isUnderWay(id) && this.#isReadable(id)) await this.#rollout(id).askAgain(first);
    }
    this.#retireSoon();
  }

  async giveBack(ids: readonly string[]): Promise<(UnspentBudget | null)[]> {
    return await Promise.all(ids.map((id) => this.#forAgent(id, async (rollout) => rollout.giveBack(), null)));
  }

  read(id: string): Rollout | null {
    this.#retireSoon();
    return this.#isBegun(id) ? this.#rollout(id).read() : null;
  }

  turns(id: string, ask: TurnsAsk): TurnSlice | null {
    this.#retireSoon();
    this.#rollouts.get(id)?.keepAnswer();
    return turnSlice(this.#table, id, ask);
  }

  rest(id: string) {
    const rollout = this.read(id);
    return rollout === null ? null : restOf(rollout);
  }

  async takeForAgent(orders: readonly TakeOrder[]): Promise<(TakenRollout | null)[]> {
    return await Promise.all(orders.map(({ rollout_id: id }) => this.#forAgent(id, (one) => one.takeForAgent(), null)));
  }

  async callForAgent(id: string, lease: number, call: AgentCall): Promise<AgentReply> {
    return await this.#forAgent(id, (rollout) => rollout.callForAgent(lease, call), ROLLOUT_ENDED);
  }

  async modelForAgent(id: string): Promise<string | null> {
    return await this.#forAgent(id, async (rollout) => rollout.model, null);
  }

  async finishForAgent(id: string, lease: number, finish: AgentFinish): Promise<FinishReply> {
    // Also for a rollout that is over: a repeat of the request that ended it gets the same answer.
    if (!this.#isBegun(id)) return "unknown";
    return await this.#attend(async () =>
      this.#isReadable(id)
        ? await this.#rollout(id).finishForAgent(lease, finish)
        : { over: "its storage cannot be read" },
    );
  }

  async lapseForAgent(id: string, lease: number, isLost: boolean): Promise<boolean> {
    return await this.#forAgent(id, (rollout) => rollout.lapseForAgent(lease, isLost), false);
  }

  /** `otherwise`: for a rollout that has ended or was never begun here. */
  async #forAgent<T>(id: string, work: (rollout: ShardRollout) => Promise<T>, otherwise: T): Promise<T> {
    return await this.#attend(async () => {
      const isOpen = this.#isUnderWay(id) && this.#isReadable(id);
      return isOpen ? await work(this.#rollout(id)) : otherwise;
    });
  }

  /** The trajectories stay in R2. */
  async free(): Promise<boolean> {
    if (this.#underWay().some((id) => this.#isReadable(id))) return false;
    if (this.#all().size > 0) {
      await this.ctx.storage.deleteAll();
      this.#table.forget();
      this.#begun = null;
    }
    this.#retireSoon();
    return true;
  }

  override async alarm(info?: AlarmInvocationInfo): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (this.#alarm !== null) {
      this.#changed();
      return;
    }
    this.#alarm = { until: this.now() + this.alarmMs, calls: this.#calls.count + ALARM_CALLS };
    try {
      // However short its time is, each due rollout makes one step.
      await this.#begin(info?.isRetry ?? false, () => true);
      while (this.#playing.size > 0) {
        await this.#change();
        await this.#begin(false, (rollout) => this.#mayGoOn(rollout));
      }
    } finally {
      this.#alarm = null;
    }
    if (this.#underWay().length > 0) await this.ctx.storage.setAlarm(this.#nextWake());
    this.#retireSoon();
  }

  /**
   * Plays due rollouts. `again`: this alarm was started before, and its process died. What an earlier process began
   * continues in scheduling turns: after a restart, thousands are due at once.
   */
  async #begin(again: boolean, may: (rollout: ShardRollout) => boolean): Promise<void> {
    for (const id of this.#underWay()) {
      const now = this.now();
      if (this.#playing.has(id) || (this.#wakeAt.get(id) ?? 0) > now) continue;
      if (!this.#isReadable(id)) {
        this.#wakeAt.set(id, now + BROKEN_RETRY_MS);
        continue;
      }
      const rollout = this.#rollout(id);
      // A cancelled rollout only reports.
      if (!this.#here.has(id) && !rollout.cancelled) {
        await PROCESS_SCHEDULER.spend(rollout.orgId, STEPS_OF_RESUMING);
      }
      if (may(rollout)) this.#play(id, again);
    }
  }

  #mayGoOn(rollout: ShardRollout): boolean {
    return rollout.cancelled || this.#mayBegin(rollout.longestMs);
  }

  #mayBegin(longestMs: number): boolean {
    if (this.#alarm === null) return false;
    return this.now() + longestMs <= this.#alarm.until && this.#calls.count <= this.#alarm.calls;
  }

  /** Reads what is stored of the rollout, unless it was read before. */
  #isReadable(id: string): boolean {
    try {
      void this.#rollout(id).cancelled;
      this.#unreadable.delete(id);
    } catch (thrown) {
      logError("rollout cannot be read", this.#idsOf(id), thrown);
      this.#unreadable.set(id, thrown);
      this.#rollouts.delete(id);
    }
    return !this.#unreadable.has(id);
  }

  /** The rollout cannot be read, but its id contains the run. */
  #idsOf(rollout_id: string): LogIds {
    const read = readId(this.env, rollout_id);
    return { rollout_id, ...(read?.kind === "rollout" && { run_id: read.runId }) };
  }

  #play(id: string, again: boolean): void {
    this.#wakeAt.delete(id);
    this.#playing.add(id);
    this.#here.add(id);
    const rollout = this.#rollout(id);
    const played = rollout.play(again).catch((thrown: unknown) => {
      logError("rollout cannot be played", this.#idsOf(id), thrown);
      return this.now() + BROKEN_RETRY_MS;
    });
    void played.then((wakeAt) => {
      this.#playing.delete(id);
      if (wakeAt === null) this.#end(id);
      // A call in the meantime may have set an earlier time.
      else this.#wakeAt.set(id, Math.min(wakeAt, this.#wakeAt.get(id) ?? wakeAt));
      this.#changed();
    });
  }

  #end(id: string): void {
    this.#all().set(id, true);
    this.#rollouts.delete(id);
    this.#here.delete(id);
    this.#wakeAt.delete(id);
  }

  /** Resolves when a rollout was started or stopped, or the next one is due. */
  async #change(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#changed = resolve;
    const next = this.#nextWake((id) => !this.#unreadable.has(id) && this.#mayGoOn(this.#rollout(id)));
    const timer = Number.isFinite(next) ? setTimeout(resolve, Math.max(0, next - this.now())) : undefined;
    await promise;
    clearTimeout(timer);
  }

  /** The earliest time at which one of these idle rollouts is due. */
  #nextWake(of: (id: string) => boolean = () => true): number {
    const idle = this.#underWay().filter((id) => !this.#playing.has(id) && of(id));
    return idle.reduce((first, id) => Math.min(first, this.#wakeAt.get(id) ?? this.now()), Number.POSITIVE_INFINITY);
  }

  /** Lets due rollouts continue. A running alarm does that itself and needs no further alarm: a crash repeats it. */
  async #wake(): Promise<void> {
    if (this.#alarm === null) await this.ctx.storage.setAlarm(this.now());
    this.#changed();
  }

  async #standing(id: string): Promise<RolloutStanding> {
    const over = this.#all().get(id);
    if (over === undefined) return { state: "unknown" };
    if (over) return { state: "answered" };
    const readable = this.#isReadable(id);
    if (!readable && !isPassing(this.env, this.#unreadable.get(id))) return { state: "unreadable" };
    const at = readable && this.#playing.has(id) ? this.#rollout(id).nextEventAt : this.#wakeAt.get(id);
    if (this.#alarm !== null) return { state: "running", next_event_at: at ?? this.now() };
    const alarm = await this.ctx.storage.getAlarm();
    // It is neither played nor will be: its alarm was lost, so it is woken.
    if (alarm === null) await this.#wake();
    return { state: "running", next_event_at: alarm === null ? this.now() : (at ?? alarm) };
  }

  #all(): Map<string, boolean> {
    this.#begun ??= this.#table.rollouts();
    return this.#begun;
  }

  #underWay(): string[] {
    return [...this.#all()].flatMap(([id, over]) => (over ? [] : [id]));
  }

  #isBegun(id: string): boolean {
    return this.#all().has(id);
  }

  #isUnderWay(id: string): boolean {
    return this.#all().get(id) === false;
  }

  #rollout(id: string): ShardRollout {
    const known = this.#rollouts.get(id);
    if (known !== undefined) return known;
    const rollout = new ShardRollout(
      {
        ctx: this.ctx,
        env: this.env,
        now: () => this.now(),
        table: this.#table,
        calls: this.#calls,
        share: () => Math.max(1, Math.floor(LIMITS.parallelFetches / this.#playing.size)),
        mayBegin: (longestMs) => this.#mayBegin(longestMs),
        wake: async () => {
          this.#wakeAt.set(id, this.now());
          await this.#wake();
        },
        allow: (spec, ask) => this.#asks.add({ spec, what: ask }),
        report: (spec, report) => this.#reports.add({ spec, what: report }),
      },
      id,
    );
    if (this.#all().get(id) !== true) this.#rollouts.set(id, rollout);
    return rollout;
  }

  /** All rollouts here are of one run. */
  #run([first]: readonly Sent<unknown>[]): GatheredRpc {
    if (first === undefined) throw new TypeError("nothing was sent to the run");
    return runOrGatherer(this.env, first.spec, first.spec.gatherers, first.spec.host);
  }

  async #attend<T>(work: () => Promise<T>): Promise<T> {
    this.#attending += 1;
    try {
      return await work();
    } finally {
      this.#attending -= 1;
      this.#retireSoon();
    }
  }

  /** Local only: takes an idle object out of memory, which frees its file descriptors. Storage and alarm stay. */
  #retireSoon(): void {
    if (!retiresAtOnce(this.env)) return;
    clearTimeout(this.#retireLater);
    this.#retireLater = setTimeout(() => {
      const idle = this.#alarm === null && this.#attending === 0;
      const soon = this.now() + RETIRE_AFTER_MS;
      if (idle && [...this.#wakeAt.values()].every((at) => at > soon)) this.ctx.abort("retired");
    }, RETIRE_AFTER_MS);
  }
}
