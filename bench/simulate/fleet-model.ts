/**
 * A fleet whose replicas take every call, and the blocks of places that objects hold there, by the functions that the
 * fleet's object and the objects that play rollouts use. The run gives each of its rollouts a place, so no call waits.
 */
import { FleetUpdate } from "../../src/contract/fleet.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { renewBlock } from "../../src/fleets/block-grants.ts";
import { renewAt } from "../../src/fleets/block-times.ts";
import { Blocks } from "../../src/fleets/blocks.ts";
import { Numbers } from "../../src/fleets/numbers.ts";
import { type Caller, PlaceBlock } from "../../src/fleets/place-block.ts";
import type { BlockAsk, CallKind, GrantedBlock } from "../../src/fleets/rpc.ts";
import { type FleetState, newFleet, setReplicas, withReplica } from "../../src/fleets/state.ts";
import type { Meter } from "./traffic.ts";
import type { World } from "./world.ts";

const KIND: CallKind = {
  ...{ scope: { orgId: "org", projectId: "pj" }, fleet_id: "fl", run_id: "run_a" },
  ...{ model: "m", trains: true },
};

export class FleetModel {
  readonly #world: World;
  readonly #meter: Meter;
  readonly #state: FleetState;
  readonly #blocks = new Blocks();
  readonly #numbers: Numbers;
  #reserved = 0;

  constructor(world: World) {
    this.#world = world;
    this.#meter = world.traffic.meter("fleet");
    this.#state = readyFleet(world.agenda.now);
    this.#numbers = new Numbers(
      () => this.#reserved,
      (upTo) => {
        this.#reserved = upTo;
      },
    );
  }

  renew(ask: BlockAsk): GrantedBlock {
    const { now } = this.#world.agenda;
    this.#world.traffic.request("fleet", this.#meter, now);
    this.#blocks.expire(now);
    return renewBlock(ask, {
      ...{ now, blocks: this.#blocks, numbers: this.#numbers },
      state: () => this.#state,
      taken: (id) => this.#blocks.of(id),
      ended: () => this.#numbers.next(),
      waits: ({ reason }) => {
        throw new Error(`a fleet with places for all takes no call: ${reason}`);
      },
    });
  }
}

function readyFleet(now: number): FleetState {
  const update = FleetUpdate.parse({});
  const ids = Array.from({ length: LIMITS.fleetReplicas }, (_, at) => `rp_${at}`);
  const settings = ids.map((id) => ({ id, name: id, max_concurrent: 1000, draining: false, address: id }));
  let state = setReplicas(newFleet(update), update, settings, now);
  for (const id of ids) state = withReplica(state, id, { probed: true, holds: "start" }, now);
  return state;
}

interface Waiting {
  readonly caller: Caller;
  readonly at: number;
  readonly begin: (number: number, replica: string) => void;
}

let names = 0;

/** An object that holds a block (src/fleets/held-block.ts), with the clock of the simulation. */
export class HolderModel {
  readonly #world: World;
  readonly #fleet: FleetModel;
  readonly #block: PlaceBlock;
  #waiting: Waiting[] = [];
  #awaited: (() => void)[] = [];
  /** The time of the next request that is planned. */
  #plannedAt: number | null = null;

  constructor(world: World, fleet: FleetModel) {
    this.#world = world;
    this.#fleet = fleet;
    names += 1;
    this.#block = new PlaceBlock(KIND, String(names));
  }

  /** `begin` is called when the call may be sent. */
  take(caller: Caller, begin: Waiting["begin"]): void {
    this.#waiting.push({ caller, at: this.#world.agenda.now, begin });
    this.#serve();
  }

  end(number: number): void {
    this.#block.end(number, { outcome: "answered" }, this.#world.agenda.now);
    this.#serve();
  }

  /** `settled` is called when the ends of the rollout's calls are numbered. */
  settle(rollout_id: string, settled: () => void): void {
    this.#block.leave(rollout_id);
    this.#awaited.push(settled);
    this.#plan();
  }

  #serve(): void {
    this.#waiting = this.#waiting.filter(({ caller, begin }) => {
      const taken = this.#block.take(caller, this.#world.agenda.now);
      if (taken !== null) begin(taken.number, taken.replica_id);
      return taken === null;
    });
    this.#plan();
  }

  #dueAt(): number | null {
    const wantedAt = this.#waiting[0]?.at ?? null;
    return renewAt({ ...this.#block.news, urgent: false, wantedAt, awaited: this.#awaited.length > 0 });
  }

  #plan(): void {
    const { agenda } = this.#world;
    const due = this.#block.isAsking ? null : this.#dueAt();
    if (due === null) return;
    const at = Math.max(agenda.now, due);
    if (this.#plannedAt !== null && this.#plannedAt <= at) return;
    this.#plannedAt = at;
    agenda.at(at, () => {
      // An earlier one was planned later.
      if (this.#plannedAt !== at) return;
      this.#plannedAt = null;
      const next = this.#block.isAsking ? null : this.#dueAt();
      if (next !== null && next <= agenda.now) this.#renew();
      else this.#plan();
    });
  }

  #renew(): void {
    const { agenda } = this.#world;
    const [waiting, awaited] = [this.#waiting.splice(0), this.#awaited.splice(0)];
    const ask = this.#block.ask(
      waiting.map(({ caller }) => caller),
      agenda.now,
    );
    agenda.in(this.#world.latency.request / 2, () => {
      const reply = this.#fleet.renew(ask);
      agenda.in(this.#world.latency.request / 2, () => {
        for (const [at, lease] of this.#block.accept(reply, agenda.now).entries()) {
          if (lease.kind === "go") waiting[at]?.begin(lease.number, lease.replica_id);
        }
        for (const settled of awaited) settled();
        this.#serve();
      });
    });
  }
}
