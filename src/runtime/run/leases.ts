/**
 * What lets a run begin rollouts and send messages: the permits of its endpoint, and its shares of what its organisation
 * may have at once (rollouts, and messages in the shared queues). Kept in the run's head. The two shares are asked for
 * together.
 *
 * Invariants. Of its organisation it wants no more rollouts than its endpoint lets it have. While the organisation has messages for all, the
 * run keeps what it mostly wants, so that nothing it does is news; else it asks for what waits, and gives back the rest.
 */
import type { RunView } from "../../contract/run.ts";
import type { Need } from "../contract/endpoint-wire.ts";
import type { Grantor } from "../contract/rpc.ts";
import type { RunSpec } from "../contract/wire.ts";
import { LeaseKeeper, type LeaseSlot, type Needed, noteChanged } from "../endpoint/lease-keeper.ts";
import { leaseRoom } from "../endpoint/run-lease.ts";
import { accountObject } from "../kit/names.ts";
import { maxConcurrentOf } from "./control.ts";
import type { RunHead } from "./schema.ts";
import { policyLease, type RunStore } from "./store.ts";

/** Messages of one kind: in the queue that has the most of them, and waiting for one. */
export interface Traffic {
  readonly inQueue: number;
  readonly waiting: number;
}

/** Of whichever kind there are most. */
export function mostOf(one: Traffic, other: Traffic): Traffic {
  return { inQueue: Math.max(one.inQueue, other.inQueue), waiting: Math.max(one.waiting, other.waiting) };
}

export interface Needs {
  /** What it wants of its endpoint. */
  readonly permits: Need;
  readonly traffic: Traffic;
}

/** A run that asks no judges mostly wants one message for so many rollouts at once. */
const ROLLOUTS_PER_MESSAGE = 4;

export class RunLeases {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #endpoint: LeaseKeeper;
  readonly #account: LeaseKeeper;
  readonly #policy: LeaseSlot;
  readonly #rollouts: LeaseSlot;
  readonly #messages: LeaseSlot;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#endpoint = new LeaseKeeper(now);
    this.#account = new LeaseKeeper(now);
    this.#policy = policyLease(store);
    this.#rollouts = slotOf(store, "rollouts");
    this.#messages = slotOf(store, "messages");
  }

  /** Rollouts that may begin now. */
  rolloutRoom(): number {
    const { running } = this.#store.head();
    return Math.min(leaseRoom(this.#policy.read(), running, this.#now()), this.#share(running));
  }

  #share(running: number): number {
    return leaseRoom(this.#rollouts.read(), running, this.#now());
  }

  /** Messages of each kind that may be in its queue at once. */
  messages(): number {
    return leaseRoom(this.#messages.read(), 0, this.#now());
  }

  /** Why there are no more rollouts at once; null when that is for another reason. */
  rolloutFlow(): RunView["flow"] {
    return this.#share(this.#store.head().running) > 0 ? null : (this.#rollouts.read().grant?.flow ?? null);
  }

  /** Why nothing more is sent; null where more can be. */
  messageFlow(inQueue: number): RunView["flow"] {
    return inQueue < this.messages() ? null : (this.#messages.read().grant?.flow ?? null);
  }

  /** Whoever it is would grant the run something else now. */
  changed(by: Grantor): void {
    for (const slot of by === "endpoint" ? [this.#policy] : [this.#rollouts, this.#messages]) noteChanged(slot);
  }

  nextAt(spec: RunSpec, needs: Needs): number | null {
    const permits = this.#endpoint.nextAt([{ slot: this.#policy, need: needs.permits }]);
    const shares = this.#account.nextAt(this.#sharesOf(spec, needs));
    const due = [permits, shares].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  async renew(spec: RunSpec, needs: Needs): Promise<void> {
    const { scope, run_id } = spec;
    await this.#endpoint.renewAt(this.#env, spec, { slot: this.#policy, need: needs.permits });
    await this.#account.renew(this.#sharesOf(spec, needs), run_id, async ([rollouts, messages]) => {
      if (rollouts === undefined || messages === undefined) return [];
      const granted = await accountObject(this.#env, scope.orgId).ask({ scope, run_id, rollouts, messages });
      return [granted.rollouts, granted.messages];
    });
  }

  #sharesOf(spec: RunSpec, { permits, traffic: { inQueue, waiting } }: Needs): Needed[] {
    const { running, wants, more } = permits;
    const head = this.#store.head();
    const permitted = Math.max(running, Math.min(wants, this.#policy.read().grant?.permits ?? 0));
    const usual = usualOf(spec, head);
    const demand = Math.max(inQueue, Math.min(Math.max(usual, 1), inQueue + waiting));
    const shared = this.#messages.read().grant?.shared ?? false;
    const wanted = shared ? demand : Math.max(demand, usual);
    return [
      { slot: this.#rollouts, need: { running, wants: permitted, more } },
      { slot: this.#messages, need: { running: inQueue, wants: wanted, more: waiting > 0, usual } },
    ];
  }
}

function usualOf(spec: RunSpec, head: RunHead): number {
  if (head.settled_at !== null) return 0;
  const rollouts = maxConcurrentOf(spec, head);
  return spec.judges === undefined ? Math.ceil(rollouts / ROLLOUTS_PER_MESSAGE) : rollouts;
}

function slotOf(store: RunStore, name: keyof RunHead["shares"]): LeaseSlot {
  return {
    read: () => store.head().shares[name],
    write: (lease) => {
      const head = store.head();
      store.saveHead({ ...head, shares: { ...head.shares, [name]: lease } });
    },
  };
}
