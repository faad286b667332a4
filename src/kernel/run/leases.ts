/**
 * What lets a run begin rollouts and send messages: the permits of its endpoint, and its shares of what its organisation
 * may have at once (rollouts, messages in the shared queues, units that are judged), and what is reserved for it to be
 * charged (charges.ts). Kept in the run's head. The shares are asked for together.
 *
 * Invariants. Of its organisation it wants no more rollouts than its endpoint lets it have. While the organisation has messages for all, the
 * run keeps what it mostly wants, so that nothing it does is news; else it asks for what waits, and gives back the rest.
 */
import type { RunView } from "../../contract/run.ts";
import { LeaseKeeper, type LeaseSlot, type Needed, noteChanged } from "../endpoint/lease-keeper.ts";
import { leaseRoom } from "../endpoint/run-lease.ts";
import { idsOf } from "../kit/log.ts";
import { accountObject } from "../kit/names.ts";
import type { Need } from "../messages/endpoint-wire.ts";
import type { Grantor } from "../messages/rpc.ts";
import type { RunSpec } from "../messages/wire.ts";
import { charges, type RunAccount } from "./charges.ts";
import { maxConcurrentOf } from "./control.ts";
import type { RunHead } from "./schema.ts";
import { policyLease } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** Messages of one kind: in the queue that has the most of them, and waiting for one. */
export interface Traffic {
  readonly inQueue: number;
  readonly waiting: number;
}

export class RunLeases {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #endpoint: LeaseKeeper;
  readonly #account: LeaseKeeper;
  readonly #policy: LeaseSlot;
  readonly #rollouts: LeaseSlot;
  readonly #messages: LeaseSlot;
  readonly #judgements: LeaseSlot;
  readonly settling: RunAccount;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#endpoint = new LeaseKeeper(now);
    this.#account = new LeaseKeeper(now);
    this.#policy = policyLease(store);
    this.#rollouts = slotOf(store, "rollouts");
    this.#messages = slotOf(store, "messages");
    this.#judgements = slotOf(store, "judgements");
    this.settling = charges().accountOf(env, store, now);
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

  /** Units that may be in the queues of judgements, or asked for, at once. */
  judgements(): number {
    return leaseRoom(this.#judgements.read(), 0, this.#now());
  }

  /** Why no more units are judged; null where more can be. */
  judgementFlow(underWay: number): RunView["flow"] {
    return underWay < this.judgements() ? null : (this.#judgements.read().grant?.flow ?? null);
  }

  /** Why there are no more rollouts at once; null when that is for another reason. */
  rolloutFlow(): RunView["flow"] {
    return this.#share(this.#store.head().running) > 0 ? null : (this.#rollouts.read().grant?.flow ?? null);
  }

  /** Why nothing more is sent; null where more can be. */
  messageFlow(inQueue: number): RunView["flow"] {
    return inQueue < this.messages() ? null : (this.#messages.read().grant?.flow ?? null);
  }

  get #shares(): readonly LeaseSlot[] {
    return [this.#rollouts, this.#messages, this.#judgements];
  }

  /** Whoever it is would grant the run something else now. */
  changed(by: Grantor): void {
    for (const slot of by === "endpoint" ? [this.#policy] : this.#shares) noteChanged(slot);
    if (by === "account") this.settling.changed();
  }

  nextAt(spec: RunSpec, needs: Needs): number | null {
    const permits = this.#endpoint.nextAt([{ slot: this.#policy, need: needs.permits }]);
    const shares = this.#account.nextAt(this.#sharesOf(spec, needs));
    const due = [permits, shares, this.settling.nextAt(spec)].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** `needsNow` is asked before each ask: what is needed changes while one is under way. */
  async renew(spec: RunSpec, needsNow: () => Needs): Promise<void> {
    const { scope, run_id } = spec;
    await this.#endpoint.renewAt(this.#env, spec, { slot: this.#policy, need: needsNow().permits });
    await this.#account.renew(
      this.#sharesOf(spec, needsNow()),
      idsOf(spec),
      async ([rollouts, messages, judgements]) => {
        if (rollouts === undefined || messages === undefined || judgements === undefined) return [];
        const asked = { scope, run_id, rollouts, messages, judgements };
        const granted = await accountObject(this.#env, scope.orgId).ask(asked);
        return [granted.rollouts, granted.messages, granted.judgements];
      },
    );
    await this.settling.advance(spec);
  }

  #sharesOf(spec: RunSpec, { permits, traffic, judging }: Needs): Needed[] {
    const { running, wants, more } = permits;
    const head = this.#store.head();
    const permitted = Math.max(running, Math.min(wants, this.#policy.read().grant?.permits ?? 0));
    const window = isOpen(head) ? maxConcurrentOf(spec, head) : 0;
    const messages = Math.ceil(window / ROLLOUTS_PER_MESSAGE);
    const judgements = spec.judges === undefined ? 0 : window;
    return [
      { slot: this.#rollouts, need: { running, wants: permitted, more } },
      { slot: this.#messages, need: needOf(this.#messages, traffic, messages) },
      { slot: this.#judgements, need: needOf(this.#judgements, judging, judgements) },
    ];
  }
}

/** While the organisation has enough for all of its runs, what the run mostly wants; else what it has use for now. */
function needOf(slot: LeaseSlot, { inQueue, waiting }: Traffic, usual: number): Need {
  const demand = Math.max(inQueue, Math.min(Math.max(usual, 1), inQueue + waiting));
  const shared = slot.read().grant?.shared ?? false;
  return { running: inQueue, wants: shared ? demand : Math.max(demand, usual), more: waiting > 0, usual };
}

export interface Needs {
  /** What it wants of its endpoint. */
  readonly permits: Need;
  readonly traffic: Traffic;
  /** Units that are judged, and that could be. */
  readonly judging: Traffic;
}

/** A run mostly wants one message for so many rollouts at once. */
const ROLLOUTS_PER_MESSAGE = 4;

/** Whether anything is under way, or will be without its owner. */
function isOpen({ settled_at, stop, paused, in_flight }: RunHead): boolean {
  return in_flight > 0 || (settled_at === null && stop === null && !paused);
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
