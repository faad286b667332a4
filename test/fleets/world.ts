/**
 * Simulated engines, an operator and a network, around the rules of a fleet. Only the simulation knows what an engine
 * really served when it sampled.
 */
import { FleetUpdate, type UpdateMode } from "../../src/contract/fleet.ts";
import { nextAt } from "../../src/fleets/alarm-times.ts";
import { Blocks } from "../../src/fleets/blocks.ts";
import { choose } from "../../src/fleets/choose.ts";
import { beginUpdates, nextStep, type Step, stepDone, toUnload } from "../../src/fleets/driving.ts";
import { InFlight } from "../../src/fleets/in-flight.ts";
import { Numbers } from "../../src/fleets/numbers.ts";
import { orderGone, reported, takeOrder } from "../../src/fleets/orders.ts";
import { isAway, probeDone } from "../../src/fleets/probing.ts";
import { orderOf } from "../../src/fleets/served.ts";
import {
  adapterName,
  type EngineCheck,
  type FleetState,
  isAt,
  newFleet,
  type PhaseName,
  setReplicas,
} from "../../src/fleets/state.ts";
import { versionOf } from "../../src/fleets/version-intervals.ts";
import { type Holds, labelOf, type Weights } from "../../src/fleets/weights.ts";
import type { PastCall } from "../../src/kernel/messages/run-fleet.ts";
import { Holders } from "./holders.ts";

export const RUN = "run_a";
export const SCOPE = { orgId: "o", projectId: "p" };

export interface Engine {
  process: number;
  alive: boolean;
  paused: boolean;
  /** Full weights. */
  weights: Weights | "start";
  readonly adapters: Map<string, Weights>;
  /** Whether it answers GET /weight_info. */
  readonly labelled: boolean;
}

interface Call {
  readonly engine: Engine;
  readonly model: string;
  readonly permitted: number | null;
  /** The weights that sampled its tokens. */
  readonly sampled: Set<string>;
  past: PastCall;
}

interface Work {
  readonly id: string;
  readonly step: Step;
  readonly at: number;
  readonly phase: PhaseName | null;
  readonly process: number;
  check: EngineCheck | null;
  reached: boolean;
}

export class World {
  readonly engines: Record<string, Engine> = {};
  now = 1_000_000;
  disk: { state: FleetState; reserved: number };
  state: FleetState;
  inFlight = new InFlight();
  blocks = new Blocks();
  readonly holders: Holders<Call>;
  numbers: Numbers;
  readonly running = new Map<string, Work>();
  readonly going: Call[] = [];
  readonly over: Call[] = [];
  /** Violations of a fleet's invariants. */
  readonly faults: string[] = [];
  /** Answers with a version of a trainer. */
  told = 0;
  /** The run names the location of version 0: then an engine's initial weights give no version. */
  readonly loadsStart: boolean;

  readonly count: number;

  constructor(mode: UpdateMode, count: number, labelled: (at: number) => boolean, loadsStart = false) {
    this.count = count;
    this.loadsStart = loadsStart;
    const kind = { scope: SCOPE, fleet_id: "fl_a", run_id: RUN, model: "base", trains: true, ...this.#says() };
    this.holders = new Holders(this, kind);
    const update = FleetUpdate.parse({ mode, pause_s: 20, update_s: 60, resume_s: 10 });
    const ids = Array.from({ length: count }, (_, at) => `rp_${at}`);
    for (const [at, id] of ids.entries()) {
      const adapters = new Map<string, Weights>();
      const fresh = { process: 1, alive: true, paused: false, weights: "start", adapters } as const;
      this.engines[id] = { ...fresh, labelled: labelled(at) };
    }
    const settings = ids.map((id) => ({ id, name: id, max_concurrent: 3, draining: false, address: id }));
    this.state = setReplicas(newFleet(update), update, settings, this.now);
    this.disk = { state: this.state, reserved: 0 };
    this.numbers = this.#numbers();
  }

  #numbers(): Numbers {
    return new Numbers(
      () => this.disk.reserved,
      (upTo) => {
        this.disk.reserved = upTo;
      },
    );
  }

  /** The state is on disk before anything else happens. */
  keep(state: FleetState): void {
    this.state = state;
    this.disk.state = state;
  }

  moment() {
    return { now: this.now, number: this.numbers.next() };
  }

  kill(): void {
    this.state = this.disk.state;
    this.inFlight = new InFlight();
    this.blocks = new Blocks();
    this.numbers = this.#numbers();
    // Requests that were sent arrive anyway, or do not.
    for (const work of this.running.values()) if (work.at % 2 === 0) this.#reach(work);
    this.running.clear();
  }

  /** Places of a replica that are given out. */
  taken(id: string): number {
    this.inFlight.expire(this.now);
    this.blocks.expire(this.now);
    return this.inFlight.of(id) + this.blocks.of(id);
  }

  /** A call without a block. */
  begin(trains: boolean): void {
    const asked = { scope: SCOPE, fleet_id: "fl_a", run_id: RUN, rollout_id: `ro_${this.over.length % 7}`, turn: 0 };
    const call = { ...asked, model: "base", trains, last_replica: null, wait_ms: 60_000, ...this.#says() };
    const choice = choose(this.state, call, (id) => this.taken(id));
    if (choice.kind === "wait") return;
    const { replica, served } = choice;
    const number = this.numbers.next();
    const until = this.now + call.wait_ms;
    const { model } = served;
    this.inFlight.add(number, { model, weights: null, replica_id: replica.id, rollout_id: call.rollout_id, until });
    if (this.inFlight.of(replica.id) > replica.max_concurrent) this.faults.push("more calls than it may have");
    if (trains && served.version === null) this.faults.push("a call that trains met weights nobody knows");
    this.goes({ replica_id: replica.id, number, end: null, model }, served.version);
  }

  /** A call is sent. */
  goes(past: PastCall, permitted: number | null): Call {
    const engine = this.engines[past.replica_id];
    if (engine === undefined) throw new Error("no such engine");
    const call: Call = { engine, model: past.model, permitted, sampled: new Set(), past };
    this.going.push(call);
    return call;
  }

  /** Nobody waits for the call any more. */
  loses(call: Call): void {
    this.going.splice(this.going.indexOf(call), 1);
  }

  #says(): { readonly loads_start?: true } {
    return this.loadsStart ? { loads_start: true } : {};
  }

  /** Samples some of a call's tokens. */
  sample(at: number): void {
    const call = this.going[at % Math.max(1, this.going.length)];
    if (call === undefined || !call.engine.alive) return;
    const weights = served(this.state, call);
    const first = !this.loadsStart && (weights?.endsWith("@0") ?? false);
    if (weights !== null) call.sampled.add(first ? "start" : weights);
  }

  end(at: number): void {
    const index = at % Math.max(1, this.going.length);
    this.sample(index);
    const [call] = this.going.splice(index, 1);
    if (call === undefined) return;
    this.over.push(call);
    if (this.holders.end(call, "answered")) return;
    this.inFlight.end(call.past.number);
    // An end that was not reported.
    if (at % 11 !== 0) call.past = { ...call.past, end: this.numbers.next() };
  }

  /** Compares the version that the fleet assigns to every ended call with what sampled its tokens. */
  judge(): void {
    const generation = orderOf(this.state, RUN)?.generation ?? null;
    for (const { past, sampled } of this.over) {
      const intervals = this.state.intervals[past.replica_id] ?? [];
      const version = versionOf(this.state.update, intervals, { run_id: RUN, generation }, past);
      if (typeof version !== "number") continue;
      if (version > 0 || this.loadsStart) this.told += 1;
      const known = version === 0 && !this.loadsStart ? "start" : `${generation ?? 0}@${version}`;
      const wrong = [...sampled].filter((one) => one !== known);
      if (wrong.length > 0) this.faults.push(`told version ${version}, sampled by ${wrong}`);
    }
  }

  order(generation: number, version: number): void {
    const of = { scope: SCOPE, fleet_id: "fl_a", run_id: RUN, generation, version, epoch: generation + 1 };
    this.keep(takeOrder(this.state, { ...of, location: "/weights", label: null, ...this.#says() }, this.now));
  }

  release(): void {
    this.keep(orderGone(this.state, RUN, this.now));
  }

  /** Another party updates the engines and reports it. */
  report(id: string, state: "pending" | "applied" | "failed", weights: Weights): void {
    const engine = this.engines[id];
    if (engine === undefined || !engine.alive) return;
    if (state === "applied") engine.weights = weights;
    this.keep(reported(this.state, { ...weights, replica: id, state }, this.moment()));
  }

  /** A pass of the alarm: starts what is due. */
  tick(): void {
    const takers = () => Object.values(this.state.replicas).filter(({ shown }) => shown === "ready").length;
    const before = takers();
    this.keep(beginUpdates(this.state, this.now, (id) => this.taken(id)));
    const left = before - takers();
    const out = Object.values(this.state.replicas).filter(({ phase }) => phase?.left === true).length;
    if (left > 0 && out > Math.max(1, (takers() + out) / 2)) this.faults.push("more than half are out");
    for (const id of Object.keys(this.engines)) this.#begin(id);
  }

  #begin(id: string): void {
    if (this.running.has(id)) return;
    const { number, now } = this.moment();
    const { state, step } = nextStep(this.state, id, { now, number, inFlight: this.taken(id) });
    this.keep(state);
    const replica = state.replicas[id];
    if (step !== null) this.#run(id, step);
    else if (replica !== undefined && replica.phase === null) {
      const weights = toUnload(state, replica, now);
      if (weights !== null) this.#run(id, { do: "unload", weights });
      else if ((replica.outage?.at ?? 0) <= now) this.#run(id, { do: "probe" });
    }
  }

  #run(id: string, step: Step): void {
    const process = this.engines[id]?.process ?? 0;
    const phase = this.state.replicas[id]?.phase?.name ?? null;
    this.running.set(id, { id, step, at: this.numbers.next(), phase, process, check: null, reached: false });
  }

  /** A request arrives at its engine. */
  reach(at: number): void {
    const work = [...this.running.values()][at % Math.max(1, this.running.size)];
    if (work !== undefined) this.#reach(work);
  }

  #reach(work: Work): void {
    const engine = this.engines[work.id];
    if (work.reached || engine === undefined) return;
    if (work.step.do === "probe") work.check = look(engine);
    if (!engine.alive || engine.process !== work.process) return;
    work.reached = true;
    change(this.state, engine, work.step);
  }

  /** Its reply arrives; `lost`: it times out instead. */
  reply(at: number, lost: boolean): void {
    const work = [...this.running.values()][at % Math.max(1, this.running.size)];
    if (work === undefined) return;
    const { id, step } = work;
    this.running.delete(id);
    if (step.do === "probe") {
      const check = lost || work.check === null ? ({ kind: "down", message: "no answer" } as const) : work.check;
      this.keep(probeDone(this.state, id, { ...this.moment(), at: work.at, check, phase: work.phase }));
      return;
    }
    const ok = work.reached && !lost;
    this.keep(stepDone(this.state, id, step, { ok, message: "no answer", ...this.moment() }));
  }

  /** Its process ends, and a new one starts with the initial weights. */
  restart(id: string, alive: boolean): void {
    const engine = this.engines[id];
    if (engine === undefined) return;
    Object.assign(engine, { process: engine.process + 1, alive, paused: false, weights: "start" });
    engine.adapters.clear();
    // Its calls get no more tokens.
    for (const call of this.going.filter((one) => one.engine === engine)) {
      this.going.splice(this.going.indexOf(call), 1);
      this.over.push(call);
      if (this.holders.end(call, "unreachable")) continue;
      this.inFlight.end(call.past.number);
      call.past = { ...call.past, end: this.numbers.next() };
    }
    const replica = this.state.replicas[id];
    if (!alive && replica?.phase === null) this.keep(isAway(this.state, replica, "connection refused", this.moment()));
  }

  /** What is wrong although nothing is failing any more. */
  leftOver(): string[] {
    const { state, engines, inFlight } = this;
    const faults = Object.values(state.replicas).flatMap((replica) => [
      ...(replica.shown === "ready" ? [] : [`a replica stays ${replica.shown}`]),
      ...(engines[replica.id]?.paused ? ["an engine stays paused"] : []),
      ...(isSame(engines[replica.id]?.weights, replica.holds) ? [] : ["an engine has other weights"]),
      ...(state.orders.every((order) => isAt(state, replica, order)) ? [] : ["a replica is not up to date"]),
    ]);
    const never = () => Number.POSITIVE_INFINITY;
    const uses = { now: this.now, used: true, inFlight: () => 0, heldUntil: () => 0, notifyAt: never };
    if ((nextAt(state, uses) ?? 0) <= this.now) faults.push("something is due and is not begun");
    const taken = Object.keys(engines).some((id) => this.taken(id) > 0);
    return inFlight.size > 0 || taken ? [...faults, "calls in flight leak"] : faults;
  }

  /** Lets everything work, for as long as necessary. */
  calm(): void {
    for (const engine of Object.values(this.engines)) engine.alive = true;
    for (let pass = 0; pass < 120; pass += 1) {
      while (this.going.length > 0) this.end(1);
      this.now += 5000;
      this.holders.settle();
      this.tick();
      while (this.running.size > 0) {
        this.reach(0);
        this.reply(0, false);
      }
    }
  }
}

function look(engine: Engine): EngineCheck {
  if (!engine.alive) return { kind: "down", message: "connection refused" };
  const { weights, process } = engine;
  const label = weights === "start" ? "default" : labelOf(weights);
  const models = ["base", ...engine.adapters.keys()];
  return { kind: "alive", models, started_at: process, weights: engine.labelled ? label : null };
}

function change({ update }: FleetState, engine: Engine, step: Step): void {
  switch (step.do) {
    case "probe":
      return;
    case "pause":
      engine.paused = true;
      return;
    case "resume":
      engine.paused = false;
      return;
    case "load": {
      const { run_id, generation, version } = step.order;
      const weights = { run_id, generation, version };
      if (update.mode === "lora_versioned") engine.adapters.set(adapterName(update, weights), weights);
      else engine.weights = weights;
      return;
    }
    case "unload":
      engine.adapters.delete(adapterName(update, step.weights));
  }
}

/** What a model name means on an engine now; null: nothing. */
function served({ update }: FleetState, { engine, model }: Call): string | null {
  if (update.mode === "lora_versioned") return model === "base" ? "start" : nameOf(engine.adapters.get(model));
  return nameOf(engine.weights);
}

function isSame(weights: Holds | undefined, holds: Holds): boolean {
  return JSON.stringify(weights) === JSON.stringify(holds);
}

function nameOf(weights: Weights | "start" | undefined): string | null {
  if (weights === undefined || weights === "start") return weights ?? null;
  return `${weights.generation}@${weights.version}`;
}
