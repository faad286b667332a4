/**
 * The leases of a run: how many rollouts it may begin and how many messages it may send. They come from its endpoint
 * (permits) and from its organisation (rollouts, messages in the shared queues, judged scoring groups). The money
 * reserved for it is in charges.ts. Leases are stored in the run's head. Those of the organisation are requested in one
 * call.
 *
 * Invariants. A run requests no more rollouts of its organisation than its endpoint grants. While the organisation has
 * enough messages for all its runs, the run keeps its usual number, so that its changes need no call. Otherwise it
 * requests what it can use now and returns the rest.
 */
import type { RunView } from "../../contract/run.ts";
import { LeaseKeeper, type LeaseSlot, type Needed, noteChanged } from "../endpoint/lease-keeper.ts";
import { leaseRemaining } from "../endpoint/run-lease.ts";
import { idsOf } from "../kit/log.ts";
import { accountObject } from "../kit/names.ts";
import type { Need } from "../messages/endpoint-wire.ts";
import type { LeaseIssuer } from "../messages/rpc.ts";
import type { RunSpec } from "../messages/wire.ts";
import { charges, type RunAccount } from "./charges.ts";
import { maxConcurrentOf } from "./control.ts";
import type { RunHead } from "./schema.ts";
import { policyLease } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** Messages of one kind: those in the fullest queue, and those that wait to be sent. */
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

  /** How many rollouts may begin now. */
  rolloutsRemaining(): number {
    const { running } = this.#store.head();
    return Math.min(leaseRemaining(this.#policy.read(), running, this.#now()), this.#quota(running));
  }

  /** True while the deployment is draining: nothing may start, not even what needs no lease. */
  isUpgrading(): boolean {
    return this.#accountSlots.some(({ read }) => read().grant?.upgrading === true);
  }

  #quota(running: number): number {
    return leaseRemaining(this.#rollouts.read(), running, this.#now());
  }

  /** How many messages of each kind may be in their queue at once. */
  messages(): number {
    return leaseRemaining(this.#messages.read(), 0, this.#now());
  }

  /** How many scoring groups may be in the judgement queues or in work at once. */
  judgements(): number {
    return leaseRemaining(this.#judgements.read(), 0, this.#now());
  }

  /** Why no more scoring groups are judged; null if more can be. */
  judgementStatusReason(underWay: number): RunView["status_reason"] {
    return underWay < this.judgements() ? null : (this.#judgements.read().grant?.flow ?? null);
  }

  /** Why no more rollouts may run at once; null if this lease is not the reason. */
  rolloutStatusReason(): RunView["status_reason"] {
    return this.#quota(this.#store.head().running) > 0 ? null : (this.#rollouts.read().grant?.flow ?? null);
  }

  /** Why nothing more is sent; null if more can be. */
  messageStatusReason(inQueue: number): RunView["status_reason"] {
    return inQueue < this.messages() ? null : (this.#messages.read().grant?.flow ?? null);
  }

  get #accountSlots(): readonly LeaseSlot[] {
    return [this.#rollouts, this.#messages, this.#judgements];
  }

  /** The grantor reports that it would grant the run something else now. */
  changed(by: LeaseIssuer): void {
    for (const slot of by === "endpoint" ? [this.#policy] : this.#accountSlots) noteChanged(slot);
    if (by === "account") this.settling.changed();
  }

  nextAt(spec: RunSpec, needs: Needs): number | null {
    const rollouts = this.#endpoint.nextAt([{ slot: this.#policy, need: needs.rollouts }]);
    const accountLeases = this.#account.nextAt(this.#accountNeeds(spec, needs));
    const due = [rollouts, accountLeases, this.settling.nextAt(spec)].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** `needsNow` is called before each request: the needs change while a request is under way. */
  async renew(spec: RunSpec, needsNow: () => Needs): Promise<void> {
    const { scope, run_id } = spec;
    await this.#endpoint.renewAt(this.#env, spec, { slot: this.#policy, need: needsNow().rollouts });
    await this.#account.renew(
      this.#accountNeeds(spec, needsNow()),
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

  #accountNeeds(spec: RunSpec, { rollouts, traffic, judging }: Needs): Needed[] {
    const { running, wants, more } = rollouts;
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

/** The usual number while the organisation has enough for all of its runs; else what the run can use now. */
export function needOf(slot: Pick<LeaseSlot, "read">, { inQueue, waiting }: Traffic, usual: number): Need {
  const demand = Math.max(inQueue, Math.min(Math.max(usual, 1), inQueue + waiting));
  const shared = slot.read().grant?.shared ?? false;
  return { running: inQueue, wants: shared ? demand : Math.max(demand, usual), more: waiting > 0, usual };
}

export interface Needs {
  /** What it needs from its endpoint. */
  readonly rollouts: Need;
  readonly traffic: Traffic;
  /** Scoring groups that are being judged, and those that could be. */
  readonly judging: Traffic;
}

/** A run usually needs one message for this many concurrent rollouts. */
export const ROLLOUTS_PER_MESSAGE = 4;

/** True if something is under way, or will be without an action of its owner. */
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
