/** Objects that hold blocks of places in the simulated world: their requests and replies arrive late, or never. */
import { renewBlock } from "../../src/fleets/block-grants.ts";
import type { Blocks } from "../../src/fleets/blocks.ts";
import type { Numbers } from "../../src/fleets/numbers.ts";
import { type Caller, PlaceBlock, type Taken } from "../../src/fleets/place-block.ts";
import type { BlockAsk, BlockReply, CallKind } from "../../src/fleets/rpc.ts";
import type { FleetState } from "../../src/fleets/state.ts";
import type { PastCall } from "../../src/kernel/messages/run-fleet.ts";

interface PastOf {
  past: PastCall;
}

/** What holders need of the simulated world. */
export interface HeldWorld<Call extends PastOf> {
  readonly now: number;
  readonly count: number;
  readonly state: FleetState;
  readonly blocks: Blocks;
  readonly numbers: Numbers;
  readonly faults: string[];
  taken(id: string): number;
  goes(past: PastCall, permitted: number | null): Call;
  loses(call: Call): void;
}

interface Holder {
  block: PlaceBlock;
  wants: Caller[];
  /** The request under way, and its reply once the fleet has answered. */
  sent: { readonly ask: BlockAsk; reply: Exclude<BlockReply, { kind: "late" }> | null } | null;
}

/** A call at a place, or one that ended there and has no number of its end yet. */
interface Placed {
  readonly holder: Holder;
  readonly number: number;
}

const HOLDERS = 3;

export class Holders<Call extends PastOf> {
  readonly #world: HeldWorld<Call>;
  readonly #kind: CallKind;
  readonly #all: readonly Holder[];
  readonly #placed = new Map<Call, Placed>();
  /** Ended calls whose end has no number. */
  readonly #open = new Map<Call, Placed>();
  #names = 0;
  /** Calls that began at a free place, without a request. */
  atFreePlaces = 0;

  constructor(world: HeldWorld<Call>, kind: CallKind) {
    this.#world = world;
    this.#kind = kind;
    this.#all = Array.from({ length: HOLDERS }, () => ({ block: this.#newBlock(), wants: [], sent: null }));
  }

  #newBlock(): PlaceBlock {
    this.#names += 1;
    return new PlaceBlock(this.#kind, `holder ${this.#names}`);
  }

  #holder(value: number): Holder {
    const holder = this.#all[value % HOLDERS];
    if (holder === undefined) throw new Error("no such holder");
    return holder;
  }

  begin(value: number): void {
    const holder = this.#holder(value);
    const last_replica = value % 4 > 0 ? null : `rp_${value % this.#world.count}`;
    const caller: Caller = { rollout_id: `ro_${value % 7}`, last_replica, wait_ms: 60_000 };
    const taken = holder.block.take(caller, this.#world.now);
    if (taken === null) {
      if (holder.wants.length < 2) holder.wants.push(caller);
    } else {
      this.atFreePlaces += 1;
      this.#begun(holder, taken);
    }
  }

  #begun(holder: Holder, { replica_id, number, model, version }: Taken): void {
    if (version === null) this.#world.faults.push("a call that trains met weights nobody knows");
    const call = this.#world.goes({ replica_id, number, end: null, model }, version);
    this.#placed.set(call, { holder, number });
  }

  /** Sends a request, delivers one to the fleet, or delivers its reply. `lost`: the request or the reply is lost. */
  move(value: number, lost: boolean): void {
    const holder = this.#holder(value);
    const { sent } = holder;
    if (sent === null) {
      holder.sent = { ask: holder.block.ask(holder.wants.splice(0), this.#world.now), reply: null };
    } else if (lost) {
      holder.sent = null;
      holder.block.fail(this.#world.now);
    } else if (sent.reply === null) sent.reply = this.#answer(sent.ask);
    else {
      holder.sent = null;
      for (const lease of holder.block.accept(sent.reply, this.#world.now)) {
        if (lease.kind === "go") this.#begun(holder, lease);
      }
      this.#number();
    }
  }

  #answer(ask: BlockAsk): Exclude<BlockReply, { kind: "late" }> {
    const world = this.#world;
    return renewBlock(ask, {
      ...{ now: world.now, blocks: world.blocks, numbers: world.numbers },
      state: () => world.state,
      taken: (id) => world.taken(id),
      ended: () => world.numbers.next(),
      waits: ({ reason }) => ({ kind: "wait", reason, again_at: world.now }),
    });
  }

  /** Returns false for a call without a place. */
  end(call: Call, outcome: "answered" | "unreachable"): boolean {
    const placed = this.#placed.get(call);
    if (placed === undefined) return false;
    this.#placed.delete(call);
    placed.holder.block.end(placed.number, { outcome }, this.#world.now);
    this.#open.set(call, placed);
    return true;
  }

  #number(): void {
    for (const [call, { holder, number }] of this.#open) {
      const end = holder.block.takeNumber(number);
      if (end === undefined) continue;
      call.past = { ...call.past, end };
      this.#open.delete(call);
    }
  }

  /** The process of a holder ends. What it stored is left: turns whose ends have no number. Its calls are lost. */
  kill(value: number): void {
    const holder = this.#holder(value);
    Object.assign(holder, { block: this.#newBlock(), wants: [], sent: null });
    for (const [call, placed] of this.#placed) {
      if (placed.holder !== holder) continue;
      this.#placed.delete(call);
      this.#world.loses(call);
    }
  }

  /** Delivers everything. */
  settle(): void {
    for (const [at] of this.#all.entries()) for (let step = 0; step < 6; step += 1) this.move(at, false);
  }
}
