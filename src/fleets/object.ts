/**
 * The Durable Object of one fleet: it chooses the replica for a call, tracks the weights of each replica, and updates
 * them. The rules are in the pure modules of this folder.
 *
 * Invariants. A step is on disk before it starts; counts (calls in flight, failures in a row) are in memory. An object
 * that was not created answers `gone` or null and writes nothing. If nothing is due, there is no alarm: an unused fleet
 * does not probe its replicas. The alarm never throws. The object never waits for an object that waits for it: it
 * notifies trainers and the endpoint object from the alarm or after its answer.
 */

import type { Send } from "../kernel/clients/outgoing.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { isArmed } from "../kernel/kit/alarms.ts";
import { isAtRest, untilTheNextBoot } from "../kernel/kit/at-rest.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { endpointObject } from "../kernel/kit/names.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Tombstone } from "../kernel/kit/tombstone.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import type { PastCall, ReplicaReport, WeightOrder } from "../kernel/messages/run-fleet.ts";
import { placesOf } from "./access.ts";
import { nextAt } from "./alarm-times.ts";
import { renewBlock } from "./block-grants.ts";
import { freshMs } from "./block-times.ts";
import { Blocks } from "./blocks.ts";
import { type Choice, choose } from "./choose.ts";
import { Circuits } from "./circuit.ts";
import { Driver } from "./driver.ts";
import { type Moment, whyNotNow } from "./driving.ts";
import { type Call, InFlight } from "./in-flight.ts";
import { Numbers } from "./numbers.ts";
import { reported, runOver, takeOrder } from "./orders.ts";
import { contradiction, isAway, lacksAdapter, lied } from "./probing.ts";
import { getFleet, replicasOf } from "./queries.ts";
import type { BlockAsk, BlockReply, CallLease, EndedCall, FleetCall, FleetRpc, FleetStanding } from "./rpc.ts";
import { orderOf, standingOf } from "./served.ts";
import { type FleetState, quotaOf, type Settings, setReplicas, withReplica } from "./state.ts";
import { type FleetOf, FleetStore } from "./store.ts";
import { versionOf } from "./version-intervals.ts";
import { askAgainAt, longestUpdateMs } from "./waiting.ts";
import type { Weights } from "./weights.ts";

/** The object is notified of new settings. It also reads them this often, in case a notification was lost. */
const SETTINGS_MS = 5 * 60_000;
/** A held replica stays held until its new settings were read, even if the notification was lost. */
const HELD_MS = 60_000;
/** After this time without a call or a waiting run, the fleet is probed only for updates. */
const USED_MS = 3600_000;
const NOTE_USED_MS = 5 * 60_000;
/** When to ask again if every replica is at its limit of calls. */
const AGAIN_MS = 1000;
const GONE = "its fleet was deleted";
const NOTHING: FleetStanding = { replicas: [], max_concurrent: 0, weights: null };

export class FleetObject extends StoredObject implements Serves<FleetRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  /** The network to the engines; tests replace it. */
  network: Send | undefined;
  /** How long a deletion waits for a step in progress; tests replace it. */
  lastStepMs = 10_000;
  readonly #store: FleetStore;
  readonly #tombstone: Tombstone;
  readonly #numbers: Numbers;
  readonly #driver: Driver;
  /** Calls without a block. */
  readonly #inFlight = new InFlight();
  readonly #blocks = new Blocks();
  readonly #circuits = new Circuits();
  /** When this instance last read the settings; null: not yet. */
  #readAt: number | null = null;
  #reading: Promise<void> | null = null;
  #armedAt: number | null = null;
  /** The sum that the endpoint object was last notified of. */
  #quota: number | null = null;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#store = new FleetStore(state.storage);
    this.#tombstone = new Tombstone(state.storage);
    this.#numbers = new Numbers(
      () => this.#store.reserved(),
      (upTo) => this.#store.reserve(upTo),
    );
    this.#driver = new Driver({
      env,
      of: () => this.#of(),
      state: () => this.#store.state(),
      keep: (next) => this.#keep(next),
      moment: () => this.#moment(),
      inFlight: (id) => this.#taken(id),
      settlesMs: (id) => (this.#blocks.of(id) > 0 ? freshMs(this.#blocks.everyMs) : 0),
      used: () => this.#used(),
      network: () => this.network,
      lastStepMs: () => this.lastStepMs,
    });
  }

  async begin(call: FleetCall): Promise<CallLease> {
    if (!(await this.#open(call))) return { kind: "gone", reason: GONE };
    const now = this.now();
    const choice = choose(this.#store.state(), call, (id) => this.#taken(id));
    await this.#noteUsed(now);
    if (choice.kind === "wait") return this.#waits(choice, now);
    const { replica, served } = choice;
    const number = this.#numbers.next();
    const { rollout_id, wait_ms } = call;
    const { model, version, generation = 0 } = served;
    const weights = version === null ? null : { run_id: call.weights_of ?? call.run_id, generation, version };
    this.#inFlight.add(number, { replica_id: replica.id, rollout_id, model, weights, until: now + wait_ms });
    return { kind: "go", number, replica_id: replica.id, ...served };
  }

  async renew(ask: BlockAsk): Promise<BlockReply> {
    if (!(await this.#open(ask))) return { kind: "gone", reason: GONE };
    const now = this.now();
    if (this.#blocks.isLate(ask)) return { kind: "late" };
    const reply = renewBlock(ask, {
      now,
      blocks: this.#blocks,
      numbers: this.#numbers,
      state: () => this.#store.state(),
      taken: (id) => this.#taken(id),
      ended: (one, weights) => this.#noteEnd(one, weights, one),
      waits: (choice) => this.#waits(choice, now),
    });
    await this.#noteUsed(now);
    await this.#arm();
    return reply;
  }

  /** Places of a replica that are given out. */
  #taken(replica: string): number {
    const now = this.now();
    this.#inFlight.expire(now);
    this.#blocks.expire(now);
    return this.#inFlight.of(replica) + this.#blocks.of(replica);
  }

  #waits({ reason, busy }: Extract<Choice, { kind: "wait" }>, now: number): Extract<CallLease, { kind: "wait" }> {
    const state = this.#store.state();
    const again_at = busy === true ? now + AGAIN_MS : askAgainAt(state, now);
    return { kind: "wait", reason, again_at, update_ms: longestUpdateMs(state.update) };
  }

  async ended(ended: EndedCall): Promise<{ end: number | null } | null> {
    if (this.#of() === null) return null;
    const call = this.#inFlight.end(ended.number);
    const end = this.#noteEnd(ended, call?.weights ?? null, call);
    await this.#arm();
    return { end };
  }

  /** The number of the call's end; null if no version may be assigned to it. `call`: null for an unknown call. */
  #noteEnd(ended: EndedCall, weights: Weights | null, call: Pick<Call, "rollout_id" | "model"> | null): number | null {
    const moment = this.#moment();
    const reported = contradiction(this.#store.state(), { ...ended, weights });
    if (reported !== null) {
      this.#keep(lied(this.#store.state(), ended.replica_id, reported, moment));
      return null;
    }
    if (call !== null) this.#noteOutcome(ended, call, moment);
    return moment.number;
  }

  #noteOutcome(ended: EndedCall, { rollout_id, model }: Pick<Call, "rollout_id" | "model">, moment: Moment): void {
    const { replica_id, outcome } = ended;
    const state = this.#store.state();
    const replica = state.replicas[replica_id];
    if (replica === undefined) return;
    if (outcome === "unknown_model") this.#keep(lacksAdapter(state, replica_id, model, moment.now));
    const opens = this.#circuits.noteOutcome(ended, rollout_id);
    if (!opens || replica.phase !== null || replica.outage !== null) return;
    this.#keep(isAway(state, replica, "calls of several rollouts in a row failed", moment));
  }

  async versions(run_id: string, calls: readonly PastCall[]): Promise<(number | null)[]> {
    if (this.#of() === null) return calls.map(() => null);
    const unsure = calls.filter((call) => this.#versionOf(run_id, call) === "unconfirmed");
    await this.#driver.confirm([...new Set(unsure.map(({ replica_id }) => replica_id))]);
    if (this.#of() === null) return calls.map(() => null);
    await this.#arm();
    return calls.map((call) => {
      const version = this.#versionOf(run_id, call);
      return version === "unconfirmed" ? null : version;
    });
  }

  #versionOf(run_id: string, call: PastCall): number | null | "unconfirmed" {
    const state = this.#store.state();
    const generation = orderOf(state, run_id)?.generation ?? null;
    return versionOf(state.update, state.intervals[call.replica_id] ?? [], { run_id, generation }, call);
  }

  async update(order: WeightOrder): Promise<void> {
    if (!(await this.#open(order))) return;
    this.#keep(takeOrder(this.#store.state(), order, this.now()));
    await this.#arm();
  }

  async reported(of: FleetOf, report: ReplicaReport): Promise<void> {
    if (!(await this.#open(of))) return;
    this.#keep(reported(this.#store.state(), report, this.#moment()));
    await this.#arm();
  }

  async release(run_id: string): Promise<void> {
    if (this.#of() === null) return;
    this.#keep(runOver(this.#store.state(), run_id, this.now()));
    await this.#arm();
  }

  async letGo(of: FleetOf, replica_id: string | null): Promise<string | null> {
    if (!(await this.#open(of))) return null;
    const state = this.#store.state();
    const asked = Object.values(state.replicas).filter(({ id }) => replica_id === null || id === replica_id);
    const [why = null] = asked.map((replica) => whyNotNow(state, replica)).filter((one) => one !== null);
    if (why !== null) return why;
    const now = this.now();
    // A fleet is deleted immediately. New settings of a replica may first have to be read after a lost notification.
    const held_until = now + HELD_MS + (replica_id === null ? 0 : SETTINGS_MS);
    this.#keep(asked.reduce((held, { id }) => withReplica(held, id, { held_until }, now), state));
    return null;
  }

  async changed(of: FleetOf): Promise<void> {
    if (this.#tombstone.stands) return;
    this.#readAt = null;
    // A read in progress may have read the previous settings.
    await this.#reading;
    this.#readAt = null;
    await this.#readSettings(of);
  }

  async standing(of: FleetOf, look = false, waits = false): Promise<FleetStanding> {
    if (!(await this.#open(of))) return NOTHING;
    if (waits) await this.#noteUsed(this.now());
    const unfit = look ? this.#standing().replicas.filter((one) => (one.unfit ?? null) !== null) : [];
    await this.#driver.confirm(unfit.map(({ replica_id }) => replica_id));
    if (this.#of() === null) return NOTHING;
    await this.#arm();
    return this.#standing();
  }

  #standing(): FleetStanding {
    return standingOf(this.#store.state(), (id) => this.#taken(id));
  }

  async free(): Promise<boolean> {
    if (this.#of() !== null) return await this.#driver.end(() => this.#forget());
    await this.#forget();
    return true;
  }

  async #forget(): Promise<void> {
    const freed = this.#tombstone.set(this.now());
    this.#store.forget();
    await freed;
  }

  override async alarm(): Promise<void> {
    if (isAtRest(this.env)) await untilTheNextBoot();
    if (await this.#tombstone.decay(this.now())) return;
    this.#armedAt = null;
    const of = this.#of();
    if (of === null) return;
    try {
      if (this.now() - (this.#readAt ?? 0) > SETTINGS_MS) await this.#readAgain(of);
      if (this.#of() !== null) await this.#driver.pass(() => this.#nextAt());
    } catch (thrown) {
      logError("fleet alarm", idsOf(of), thrown);
    }
    await this.#arm();
  }

  /** Null for a fleet that was not created or was deleted. */
  #of(): FleetOf | null {
    return this.#tombstone.stands ? null : this.#store.of();
  }

  /** Reads the settings once; if that fails, the known ones apply. Returns false if the fleet does not exist. */
  async #open(of: FleetOf): Promise<boolean> {
    if (this.#tombstone.stands) return false;
    if (this.#readAt !== null) return this.#of() !== null;
    await this.#readAgain(of);
    return this.#of() !== null;
  }

  /** Throws only if no settings are known. */
  async #readAgain(of: FleetOf): Promise<void> {
    try {
      await this.#readSettings(of);
    } catch (thrown) {
      if (this.#of() === null) throw thrown;
      logError("fleet settings", idsOf(of), thrown);
    }
  }

  async #readSettings(of: FleetOf): Promise<void> {
    this.#reading ??= this.#read(of).finally(() => {
      this.#reading = null;
    });
    await this.#reading;
  }

  async #read({ scope, fleet_id }: FleetOf): Promise<void> {
    const fleet = await getFleet(databaseOf(this.env), scope, fleet_id);
    const rows = await replicasOf(databaseOf(this.env), scope, fleet_id);
    if (this.#tombstone.stands) return;
    if (fleet === null || fleet.deleted_at !== null) {
      if (this.#store.of() !== null) await this.free();
      return;
    }
    if (this.#store.of() === null) this.#store.create({ scope, fleet_id }, fleet.update);
    const settings = rows.map((row): Settings => {
      const { id, name, max_concurrent, draining, base_url, control_url } = row;
      const address = `${base_url} ${control_url ?? ""}`;
      return { id, name, max_concurrent, draining, address, places: placesOf(row) };
    });
    const before = this.#store.state();
    this.#keep(setReplicas(before, fleet.update, settings, this.now()));
    for (const { id } of Object.values(before.replicas)) {
      if (settings.some((one) => one.id === id)) continue;
      this.#inFlight.forget(id);
      this.#blocks.forget(id);
    }
    this.#readAt = this.now();
    await this.#arm();
  }

  #moment(): Moment {
    return { now: this.now(), number: this.#numbers.next() };
  }

  #used(): boolean {
    return this.now() - this.#store.usedAt() < USED_MS;
  }

  async #noteUsed(now: number): Promise<void> {
    if (now - this.#store.usedAt() < NOTE_USED_MS) return;
    this.#store.noteUsed(now);
    await this.#arm();
  }

  /**
   * Stores the state, and notifies the endpoint object, which grants leases, if the sum of calls at once has changed.
   */
  #keep(state: FleetState): void {
    const of = this.#of();
    if (of === null) return;
    this.#store.save(state);
    const quota = quotaOf(state);
    if (quota === this.#quota) return;
    this.#quota = quota;
    this.ctx.waitUntil(this.#notifyEndpoint(of));
  }

  /** If this notification is lost, the endpoint object reads the sum itself some minutes later. */
  async #notifyEndpoint({ scope, fleet_id }: FleetOf): Promise<void> {
    try {
      await endpointObject(this.env, scope, fleet_id).changed();
    } catch (thrown) {
      logError("endpoint does not answer", idsOf({ scope, endpoint_id: fleet_id }), thrown);
    }
  }

  #nextAt(): number | null {
    if (this.#of() === null) return null;
    const now = this.now();
    this.#blocks.expire(now);
    return nextAt(this.#store.state(), {
      ...{ now, used: this.#used(), inFlight: (id) => this.#taken(id), placesEndAt: this.#blocks.nextAt },
      heldUntil: (id) => this.#driver.heldUntil(id),
      notifyAt: (id) => this.#driver.notifyAt(id),
    });
  }

  async #arm(): Promise<void> {
    const at = this.#nextAt();
    if (at === null || (at <= this.now() && this.#driver.wake())) return;
    if (isArmed(this.#armedAt, at, this.now())) return;
    this.#armedAt = at;
    await this.ctx.storage.setAlarm(at);
  }
}
