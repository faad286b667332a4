/**
 * The work of a fleet object's alarm: it probes replicas, runs the steps of updates at their engines, and notifies
 * trainers. Only one step runs at a replica at a time, and a replica that hangs does not delay the others.
 *
 * Invariants. A step's state change is stored before its request is sent. A pass starts no step that could outlast the
 * time limit of an alarm or exceed its quota of calls. Only storage errors are thrown.
 */

import type { Send } from "../kernel/clients/outgoing.ts";
import { EndpointUnusable } from "../kernel/endpoint/call.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { trainerObject } from "../kernel/kit/names.ts";
import { Semaphore } from "../kernel/kit/semaphore.ts";
import { emitEvents } from "../kernel/kit/slice-hooks.ts";
import { openReplica } from "./access.ts";
import { lookAt } from "./alarm-times.ts";
import { beginUpdates, type Moment, nextStep, type Step, stepDone, toUnload } from "./driving.ts";
import type { Engine } from "./engine-calls.ts";
import { resumeEngine } from "./engine-pause.ts";
import { checkEngine } from "./engine-probe.ts";
import { type Change, change, timeOf } from "./engines.ts";
import { leavingNews, noteNotified, orderGone, runOver, unnotified } from "./orders.ts";
import { probeDone } from "./probing.ts";
import {
  type Again,
  again,
  type EngineCheck,
  type FleetState,
  isNewlyDown,
  type PhaseName,
  type Replica,
  type TrainerNotice,
  withReplica,
} from "./state.ts";
import type { FleetOf } from "./store.ts";

/** The parts of the fleet object that the driver needs. */
export interface Desk {
  readonly env: Env;
  readonly of: () => FleetOf | null;
  readonly state: () => FleetState;
  readonly keep: (state: FleetState) => void;
  readonly moment: () => Moment;
  readonly inFlight: (replica: string) => number;
  /** How long objects may still begin calls at free places of a replica that takes no new ones, in milliseconds. */
  readonly settlesMs: (replica: string) => number;
  readonly used: () => boolean;
  /** The network to the engines; tests replace it. */
  readonly network: () => Send | undefined;
  /** How long a deletion of the fleet waits for steps in progress. */
  readonly lastStepMs: () => number;
}

/** The platform allows an alarm 15 minutes. */
const PASS_MS = 880_000;
/** Calls of one pass: below the limit of one invocation. */
const PASS_CALLS = 5000;
/** The most that one probe takes. */
const LOOK_MS = 15_000;
const LOOK_CALLS = 5;
/** Each probe holds one of the six connections, and so does each load. */
const LOOKS_AT_ONCE = 3;
const TELL_MS = 15_000;
const HELD_MS = 5000;
/** The additional time for resuming paused engines. */
const LAST_RESUME_MS = 10_000;
/** The least time between two probes of one replica that a caller waits for. */
const ASIDE_MS = 1000;

export class Driver {
  readonly #desk: Desk;
  /** Work in progress, by replica id. Notifications use the key `notify <replica id>`. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #looks = new Semaphore(() => LOOKS_AT_ONCE);
  /** Probes that a caller waits for. */
  readonly #aside = new Map<string, Promise<void>>();
  readonly #asideAt = new Map<string, number>();
  readonly #unnotified = new Map<string, Again>();
  readonly #held = new Map<string, number>();
  #wake: (() => void) | null = null;
  #calls = 0;
  #ending = false;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Something is due earlier than before. Returns false if no pass is running. */
  wake(): boolean {
    this.#wake?.();
    return this.#wake !== null;
  }

  /** The earliest time at which a step may start at this replica. */
  heldUntil(id: string): number {
    return this.#held.get(id) ?? 0;
  }

  notifyAt(id: string): number {
    return this.#unnotified.get(id)?.at ?? 0;
  }

  /** Does what is due, and becomes due meanwhile, until nothing is in progress. `nextAt`: when something is due. */
  async pass(nextAt: () => number | null): Promise<void> {
    const until = this.#now() + PASS_MS;
    this.#calls = 0;
    try {
      for (let open = true; ; ) {
        const woken = Promise.withResolvers<void>();
        this.#wake = woken.resolve;
        // A fleet that was deleted meanwhile starts nothing more. Work in progress may still have to resume an engine.
        open = open && this.#desk.of() !== null && this.#begin(until);
        if (this.#running.size === 0) break;
        const wait = open ? Math.max(0, (nextAt() ?? until) - this.#now()) : PASS_MS;
        // Something that is due but cannot start yet starts when other work has ended.
        const timer = wait > 0 ? setTimeout(woken.resolve, wait) : undefined;
        await Promise.race([woken.promise, ...this.#running.values()]);
        clearTimeout(timer);
      }
    } finally {
      this.#wake = null;
    }
  }

  /** Returns false if something is due that this pass may no longer start. */
  #begin(until: number): boolean {
    const desk = this.#desk;
    if (this.#ending || desk.of() === null) return false;
    desk.keep(beginUpdates(desk.state(), this.#now(), desk.inFlight, desk.settlesMs));
    const all = Object.keys(desk.state().replicas).map((id) => this.#beginOne(id, until));
    for (const { id, told } of desk.state().leaving) this.#notify(id, leavingNews(desk.state(), told));
    return all.every((begun) => begun);
  }

  #beginOne(id: string, until: number): boolean {
    const desk = this.#desk;
    const replica = desk.state().replicas[id];
    if (replica === undefined) return true;
    this.#notify(id, unnotified(desk.state(), replica));
    if (this.#running.has(id) || this.heldUntil(id) > this.#now()) return true;
    const { state, step } = nextStep(desk.state(), id, { ...desk.moment(), inFlight: desk.inFlight(id) });
    desk.keep(state);
    const due = step ?? this.#besides(id);
    if (due === null) return true;
    const time = due.do === "probe" ? LOOK_MS : timeOf(state, due);
    if (this.#now() + time > until || this.#calls + LOOK_CALLS > PASS_CALLS) return false;
    this.#calls += LOOK_CALLS;
    this.#run(id, () => this.#driveOrHold(id, due));
    return true;
  }

  /** What is due for a replica that is not being updated. */
  #besides(id: string): Step | null {
    const state = this.#desk.state();
    const replica = state.replicas[id];
    if (replica === undefined || replica.phase !== null) return null;
    const weights = toUnload(state, replica, this.#now());
    if (weights !== null) return { do: "unload", weights };
    const at = lookAt(state, replica, this.#desk.used());
    return at !== null && at <= this.#now() ? { do: "probe" } : null;
  }

  #run(name: string, work: () => Promise<void>): void {
    const done = async () => {
      try {
        await work();
      } catch (thrown) {
        logError("fleet", idsOf(this.#desk.of() ?? {}), thrown);
      } finally {
        this.#running.delete(name);
      }
    };
    this.#running.set(name, done());
  }

  /** A step that fails because of the platform itself is tried again after `HELD_MS`. */
  async #driveOrHold(id: string, step: Step): Promise<void> {
    this.#held.set(id, this.#now() + HELD_MS);
    if (step.do === "probe") await this.#look(id);
    else await this.#change(id, step);
    this.#held.delete(id);
  }

  /** Probes a replica. If the probe itself fails because of the platform, the state does not change. */
  async #look(id: string): Promise<void> {
    const desk = this.#desk;
    if (desk.of() === null) return;
    const phase = desk.state().replicas[id]?.phase?.name ?? null;
    await this.#looks.run(async () => {
      if (desk.of() === null) return;
      const { number: at } = desk.moment();
      const check = await this.#check(id);
      if (desk.of() !== null) this.#looked(id, check, { at, phase });
    });
  }

  #looked(id: string, check: EngineCheck, begun: { readonly at: number; readonly phase: PhaseName | null }): void {
    this.#desk.keep(probeDone(this.#desk.state(), id, { ...this.#desk.moment(), ...begun, check }));
  }

  async #check(id: string): Promise<EngineCheck> {
    const engine = await this.#engine(id);
    return "message" in engine ? { kind: "down", message: engine.message } : await checkEngine(engine);
  }

  async #change(id: string, step: Change): Promise<void> {
    const desk = this.#desk;
    const state = desk.state();
    const replica = state.replicas[id];
    if (replica === undefined) return;
    const engine = await this.#engine(id);
    const refused = "message" in engine;
    const outcome = refused ? { ok: false, message: engine.message } : await change(engine, state, step);
    const known = desk.of() !== null;
    if (known) desk.keep(stepDone(desk.state(), id, step, { ...outcome, ...desk.moment() }));
    // The replica was removed from the fleet before its update ended.
    const left = !known || desk.state().replicas[id]?.address !== replica.address;
    if (left && replica.paused && !refused) {
      await resumeEngine(engine, timeOf(state, { do: "resume" }));
    }
  }

  /**
   * Starts nothing more, waits for steps in progress, and resumes each paused engine once, because nothing will retry
   * it after the deletion. Steps in progress end first, so that all of their state is on disk if the process is killed.
   * `free` is called immediately afterwards. Returns false if a step takes too long: nothing is freed, and the caller
   * has to try again later.
   */
  async end(free: () => Promise<void>): Promise<boolean> {
    this.#ending = true;
    let waits = false;
    try {
      const paused = () => Object.values(this.#desk.state().replicas).filter((one) => one.paused);
      const going = paused().map(({ id }) => this.#running.get(id));
      const timer = Promise.withResolvers<void>();
      const late = setTimeout(timer.resolve, this.#desk.lastStepMs());
      await Promise.race([Promise.all(going), timer.promise]);
      clearTimeout(late);
      const left = paused().filter(({ id }) => !this.#running.has(id));
      await Promise.all(left.map(({ id }) => this.#looks.run(() => this.#resumeOnce(id))));
      waits = paused().some(({ id }) => this.#running.has(id));
      if (!waits) await free();
      return !waits;
    } finally {
      this.#ending = waits;
    }
  }

  async #resumeOnce(id: string): Promise<void> {
    try {
      const engine = await this.#engine(id);
      if (!("message" in engine)) await resumeEngine(engine, LAST_RESUME_MS);
    } catch (thrown) {
      logError("fleet", idsOf(this.#desk.of() ?? {}), thrown);
    }
  }

  /** The engine with its decrypted keys, or the reason why it cannot be called. */
  async #engine(id: string): Promise<Engine | { readonly message: string }> {
    const of = this.#desk.of();
    if (of === null) return { message: "its fleet was deleted" };
    try {
      const access = await openReplica(this.#desk.env, of.scope, of.fleet_id, id, this.#now());
      return { ...access, name: id, send: this.#desk.network() ?? access.send };
    } catch (thrown) {
      if (thrown instanceof EndpointUnusable) return { message: thrown.message };
      throw thrown;
    }
  }

  /** Probes each of these replicas after this call. Callers share probes: at most one a second for each replica. */
  async confirm(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#confirmOne(id)));
  }

  async #confirmOne(id: string): Promise<void> {
    // A probe in progress may have started before this call.
    await this.#aside.get(id);
    const going = this.#aside.get(id);
    if (going !== undefined) return await going;
    const look = this.#aloud(id);
    this.#aside.set(id, look);
    await look;
  }

  async #aloud(id: string): Promise<void> {
    const wait = (this.#asideAt.get(id) ?? 0) + ASIDE_MS - this.#now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(wait, ASIDE_MS)));
    this.#asideAt.set(id, this.#now());
    try {
      await this.#look(id);
    } catch (thrown) {
      logError("fleet", idsOf(this.#desk.of() ?? {}), thrown);
    } finally {
      this.#aside.delete(id);
    }
  }

  /** Notifies trainers, again and again until they have acknowledged. */
  #notify(id: string, news: readonly TrainerNotice[]): void {
    const name = `notify ${id}`;
    const replica = this.#desk.state().replicas[id];
    const down = replica !== undefined && isNewlyDown(replica) ? replica : null;
    if (news.length === 0 && down === null) return;
    if (this.#running.has(name) || this.notifyAt(id) > this.#now()) return;
    this.#run(name, async () => {
      try {
        if (down !== null) await this.#announce(down);
        for (const notice of news) await this.#notifyOne(id, notice);
        this.#unnotified.delete(id);
      } catch (thrown) {
        logError("the run's trainer was not notified of the fleet", idsOf(this.#desk.of() ?? {}), thrown);
        this.#unnotified.set(id, again(this.#unnotified.get(id) ?? null, "", this.#now()));
      }
    });
  }

  async #announce({ id, name, since, outage }: Replica): Promise<void> {
    const of = this.#desk.of();
    if (of === null) return;
    const { scope, fleet_id } = of;
    const data = { fleet_id, replica_id: id, name, reason: outage?.reason ?? "" };
    const event = { id: `evt_replica_${id.replace(/\W/g, "_")}_${since}`, type: "replica.down" } as const;
    await emitEvents(this.#desk.env, scope, [{ ...event, at: since, subject: fleet_id, data }]);
    if (this.#desk.of() === null) return;
    this.#desk.keep(withReplica(this.#desk.state(), id, { announced: since }, this.#now()));
  }

  async #notifyOne(replica: string, notice: TrainerNotice): Promise<void> {
    const desk = this.#desk;
    const of = desk.of();
    const { run_id, generation, version, state } = notice;
    const order = of === null ? undefined : desk.state().orders.find((one) => one.run_id === run_id);
    if (of === null || order === undefined) return;
    const trainer = trainerObject(desk.env, of.scope, run_id);
    const report = { version, state, epoch: order.epoch, replica, of_fleet: { generation } };
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error("no answer")), TELL_MS);
    try {
      const answer = await Promise.race([trainer.report(report), late]);
      if (desk.of() === null) return;
      const code = answer.ok ? null : answer.refusal.code;
      if (code !== null && OVER.includes(code)) desk.keep(runOver(desk.state(), run_id, this.#now()));
      // The run sends its order again with another epoch.
      else if (code === "epoch_fenced") desk.keep(orderGone(desk.state(), run_id, this.#now()));
      // The trainer would refuse any other report again, so it counts as notified.
      else desk.keep(noteNotified(desk.state(), replica, notice, this.#now()));
    } finally {
      clearTimeout(timer);
    }
  }

  #now(): number {
    return this.#desk.moment().now;
  }
}

/** The run is over: its weights are no longer needed. */
const OVER: readonly string[] = ["unknown", "run_finished"];
