/**
 * The work of a fleet's alarm: looks at replicas, drives what is due at their engines, and tells trainers. Each replica
 * has one thing done to it at a time; one that hangs holds up no other.
 *
 * Invariants. What a step changes is kept before it leaves. A pass begins nothing that could outlast the time that an
 * alarm may take, nor more than its share of calls. Nothing here throws but what the storage throws.
 */

import type { Send } from "../kernel/clients/outgoing.ts";
import { EndpointUnusable } from "../kernel/endpoint/call.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { trainerObject } from "../kernel/kit/names.ts";
import { emitEvents } from "../kernel/kit/slice-hooks.ts";
import { Turns } from "../kernel/kit/turns.ts";
import { openReplica } from "./access.ts";
import { lookAt } from "./alarm-times.ts";
import { beginUpdates, type Moment, nextStep, type Step, stepDone, toUnload } from "./driving.ts";
import type { Engine } from "./engine-calls.ts";
import { resumeEngine } from "./engine-pause.ts";
import { checkEngine } from "./engine-probe.ts";
import { type Change, change, timeOf } from "./engines.ts";
import { leavingNews, noteTold, orderGone, runOver, untold } from "./orders.ts";
import { probeDone } from "./probing.ts";
import {
  type Again,
  again,
  type EngineCheck,
  type FleetState,
  isNewlyDown,
  type PhaseName,
  type Replica,
  type Told,
  withReplica,
} from "./state.ts";
import type { FleetOf } from "./store.ts";

/** What the driver needs of its object. */
export interface Desk {
  readonly env: Env;
  readonly of: () => FleetOf | null;
  readonly state: () => FleetState;
  readonly keep: (state: FleetState) => void;
  readonly moment: () => Moment;
  readonly inFlight: (replica: string) => number;
  readonly used: () => boolean;
  /** The network that leads to engines, replaced by tests. */
  readonly network: () => Send | undefined;
  /** Whoever deletes a fleet waits so long for what is under way. */
  readonly lastStepMs: () => number;
}

/** An alarm may take 15 minutes. */
const PASS_MS = 880_000;
/** Calls of one pass: below what an invocation may make. */
const PASS_CALLS = 5000;
/** What one look takes at most. */
const LOOK_MS = 15_000;
const LOOK_CALLS = 5;
/** Each holds a connection of the six, and so do those that load. */
const LOOKS_AT_ONCE = 3;
const TELL_MS = 15_000;
const HELD_MS = 5000;
/** And then so long for what it has paused to be resumed. */
const LAST_RESUME_MS = 10_000;
/** Looks that somebody waits for, at one replica. */
const ASIDE_MS = 1000;

export class Driver {
  readonly #desk: Desk;
  /** What goes on, by replica; of what is told, by `tell` and replica. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #looks = new Turns(() => LOOKS_AT_ONCE);
  /** Looks that somebody waits for. */
  readonly #aside = new Map<string, Promise<void>>();
  readonly #asideAt = new Map<string, number>();
  readonly #untold = new Map<string, Again>();
  readonly #held = new Map<string, number>();
  #wake: (() => void) | null = null;
  #calls = 0;
  #ending = false;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Something is due earlier than it was: false where no pass is under way. */
  wake(): boolean {
    this.#wake?.();
    return this.#wake !== null;
  }

  /** Nothing is begun at this replica before. */
  heldUntil(id: string): number {
    return this.#held.get(id) ?? 0;
  }

  tellAt(id: string): number {
    return this.#untold.get(id)?.at ?? 0;
  }

  /** Does what is due, and what becomes due meanwhile, until nothing is under way. `nextAt`: when something is due. */
  async pass(nextAt: () => number | null): Promise<void> {
    const until = this.#now() + PASS_MS;
    this.#calls = 0;
    try {
      for (let open = true; ; ) {
        const woken = Promise.withResolvers<void>();
        this.#wake = woken.resolve;
        // One that was deleted meanwhile begins nothing more, and what is under way may owe an engine its resume.
        open = open && this.#desk.of() !== null && this.#begin(until);
        if (this.#running.size === 0) break;
        const wait = open ? Math.max(0, (nextAt() ?? until) - this.#now()) : PASS_MS;
        // What is due and cannot begin yet begins when something has ended.
        const timer = wait > 0 ? setTimeout(woken.resolve, wait) : undefined;
        await Promise.race([woken.promise, ...this.#running.values()]);
        clearTimeout(timer);
      }
    } finally {
      this.#wake = null;
    }
  }

  /** False where something is due that this pass may not begin any more. */
  #begin(until: number): boolean {
    const desk = this.#desk;
    if (this.#ending || desk.of() === null) return false;
    desk.keep(beginUpdates(desk.state(), this.#now(), desk.inFlight));
    const all = Object.keys(desk.state().replicas).map((id) => this.#beginOne(id, until));
    for (const { id, told } of desk.state().leaving) this.#tell(id, leavingNews(desk.state(), told));
    return all.every((begun) => begun);
  }

  #beginOne(id: string, until: number): boolean {
    const desk = this.#desk;
    const replica = desk.state().replicas[id];
    if (replica === undefined) return true;
    this.#tell(id, untold(desk.state(), replica));
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

  /** What is due of a replica that is not being updated. */
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

  /** What fails for a reason of the platform's own is begun again a little later. */
  async #driveOrHold(id: string, step: Step): Promise<void> {
    this.#held.set(id, this.#now() + HELD_MS);
    if (step.do === "probe") await this.#look(id);
    else await this.#change(id, step);
    this.#held.delete(id);
  }

  /** Looks at a replica. Nothing is learnt where it could not be asked for a reason of the platform's own. */
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
    // Whoever took it out of the fleet did not wait for its update to end.
    const left = !known || desk.state().replicas[id]?.address !== replica.address;
    if (left && replica.paused && !refused) {
      await resumeEngine(engine, timeOf(state, { do: "resume" }));
    }
  }

  /**
   * Begins nothing more, and resumes what is paused, once each: nobody comes back to it. What is under way ends first,
   * so that a kill meanwhile finds all of it on disk. `free`: what follows at once. False: a step takes longer, and nothing
   * is freed until it has ended: somebody asks again.
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

  /** With its keys opened, or why it cannot be asked. */
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

  /**
   * Has each of these looked at by a look that is begun from now on: one at a time, and one a second, for all who wait.
   */
  async confirm(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#confirmOne(id)));
  }

  async #confirmOne(id: string): Promise<void> {
    // One that is under way may have begun too early.
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

  /** Trainers are told until they have heard. */
  #tell(id: string, news: readonly Told[]): void {
    const name = `tell ${id}`;
    const replica = this.#desk.state().replicas[id];
    const down = replica !== undefined && isNewlyDown(replica) ? replica : null;
    if (news.length === 0 && down === null) return;
    if (this.#running.has(name) || this.tellAt(id) > this.#now()) return;
    this.#run(name, async () => {
      try {
        if (down !== null) await this.#announce(down);
        for (const tell of news) await this.#tellOne(id, tell);
        this.#untold.delete(id);
      } catch (thrown) {
        logError("fleet is not heard", idsOf(this.#desk.of() ?? {}), thrown);
        this.#untold.set(id, again(this.#untold.get(id) ?? null, "", this.#now()));
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

  async #tellOne(replica: string, tell: Told): Promise<void> {
    const desk = this.#desk;
    const of = desk.of();
    const { run_id, generation, version, state } = tell;
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
      // The run orders anew by another epoch.
      else if (code === "epoch_fenced") desk.keep(orderGone(desk.state(), run_id, this.#now()));
      // Anything else that it refuses it would refuse again.
      else desk.keep(noteTold(desk.state(), replica, tell, this.#now()));
    } finally {
      clearTimeout(timer);
    }
  }

  #now(): number {
    return this.#desk.moment().now;
  }
}

/** Nobody wants its run's weights any more. */
const OVER: readonly string[] = ["unknown", "run_finished"];
