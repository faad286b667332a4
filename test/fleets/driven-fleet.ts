/** A fleet object with engines behind its network, whose clock and alarms are driven by hand. */
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import type { Scope } from "../../src/contract/scope.ts";
import { FleetObject } from "../../src/fleets/object.ts";
import { insertFleet, type NewReplica } from "../../src/fleets/queries.ts";
import type { BlockAsk, BlockReply, CallLease } from "../../src/fleets/rpc.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { type Inside, inside } from "../kernel/platform.ts";
import { openDelivery } from "../kernel/trainer-batch.ts";
import { type Cut, LoopEngine, networkOf } from "./loop-engine.ts";

const HOUR = 3_600_000;
const SOON = { interval: 5 };

export class DrivenFleet {
  readonly #scope: Scope;
  readonly fleet_id = `fl_${crypto.randomUUID()}`;
  readonly ids: readonly string[];
  readonly engines: Readonly<Record<string, LoopEngine>>;
  run_id = "";
  now = Date.now() + HOUR;
  /** How long a deletion waits for a step in progress; undefined: the platform's default. */
  lastStepMs: number | undefined;

  constructor(scope: Scope, count: number) {
    this.#scope = scope;
    this.ids = Array.from({ length: count }, () => `rp_${crypto.randomUUID()}`);
    this.engines = Object.fromEntries(this.ids.map((id) => [`${id.slice(3)}.example`, new LoopEngine()]));
  }

  engine(at: number): LoopEngine {
    const engine = Object.values(this.engines)[at];
    if (engine === undefined) throw new Error("no such engine");
    return engine;
  }

  async open(): Promise<this> {
    const at = { created_at: 1, updated_at: 1 };
    const update = FleetUpdate.parse({ mode: "reload" });
    const replica = { fleet_id: this.fleet_id, control_url: null, sealed_key: null, api_key_last4: null };
    const rest = { sealed_control_key: null, max_concurrent: 2, draining: false, capabilities: null, ...at };
    const replicas = this.ids.map((id, which): NewReplica => {
      const base_url = `https://${id.slice(3)}.example/v1`;
      return { id, name: `gpu-${which}`, base_url, ...replica, ...rest };
    });
    const fleet = { id: this.fleet_id, name: this.fleet_id, update, prices: null, location_hint: null, ...at };
    await insertFleet(databaseOf(env), this.#scope, { ...fleet, deleted_at: null }, replicas, null);
    ({ run_id: this.run_id } = await openDelivery(this.#scope));
    await this.fire();
    await this.in((object) => object.changed(this.of));
    await this.fire();
    return this;
  }

  get of() {
    return { scope: this.#scope, fleet_id: this.fleet_id };
  }

  /** Sets its clock an hour ahead, so that alarms only fire by hand. */
  in<T>(use: Inside<FleetObject, T>): Promise<T> {
    const { orgId, projectId } = this.#scope;
    const stub = env.FLEET.getByName(`org/${orgId}/${projectId}/${this.fleet_id}`);
    return inside(stub, FleetObject, async (object, state) => {
      object.now = () => this.now;
      object.network = networkOf(this.engines);
      object.lastStepMs = this.lastStepMs ?? object.lastStepMs;
      return await use(object, state);
    });
  }

  fire(): Promise<void> {
    return this.in((object) => object.alarm());
  }

  /** Fires the alarm, and kills the object when the engine gets the request. */
  async kill(engine: LoopEngine, route: string, at: Cut): Promise<void> {
    engine.cut = { route, at };
    // The caller never gets an answer.
    void this.fire().catch(() => "killed");
    await expect.poll(() => engine.cut, SOON).toBe(null);
    await this.in((_, state) => state.abort("killed")).catch(() => "killed");
  }

  order(version: number, epoch = 1): Promise<void> {
    const order = { ...this.of, run_id: this.run_id, generation: 0, version, epoch, label: null };
    return this.in((object) => object.update({ ...order, location: `/weights/${version}` }));
  }

  begin(last_replica: string | null = null): Promise<CallLease> {
    const call = { ...this.of, run_id: this.run_id, rollout_id: crypto.randomUUID(), turn: 0, model: "base" };
    return this.in((object) => object.begin({ ...call, trains: true, last_replica, wait_ms: 60_000 }));
  }

  async go(last_replica: string | null = null): Promise<Extract<CallLease, { kind: "go" }>> {
    const lease = await this.begin(last_replica);
    if (lease.kind !== "go") throw new Error(JSON.stringify(lease));
    return lease;
  }

  async call(label?: string) {
    const { number, replica_id, model } = await this.go();
    const said = label === undefined ? {} : { label };
    const heard = await this.in((object) => object.ended({ number, replica_id, outcome: "answered", ...said }));
    return { number, replica_id, model, end: heard?.end ?? null };
  }

  async states() {
    const { replicas } = await this.in((object) => object.standing(this.of));
    return replicas.map(({ state, version }) => `${state} ${version}`).toSorted();
  }

  /** A request for the block of a holder. */
  renew(asked: Pick<BlockAsk, "holder" | "request"> & Partial<BlockAsk>): Promise<BlockReply> {
    const kind = { ...this.of, run_id: this.run_id, model: "base", trains: true };
    return this.in((object) => object.renew({ ...kind, calls: [], idle: [], ended: [], wants: [], ...asked }));
  }

  /** Its process ends: only what is on disk is left. */
  async killAtOnce(): Promise<void> {
    await this.in((_, state) => state.abort("killed")).catch(() => "killed");
  }

  async inFlight(): Promise<number[]> {
    const { replicas } = await this.in((object) => object.standing(this.of));
    return replicas.map(({ in_flight }) => in_flight).toSorted();
  }
}
