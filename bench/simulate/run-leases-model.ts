/** The leases of a run, as src/kernel/run/leases.ts keeps them: of its endpoint, and of its organisation. */
import {
  afterDispatch,
  afterEnd,
  askAt,
  beginAsk,
  isDue,
  type LeaseState,
  leaseRemaining,
  NEW_LEASE,
  takeLease,
} from "../../src/kernel/endpoint/run-lease.ts";
import type { Need } from "../../src/kernel/messages/endpoint-wire.ts";
import { needOf, type Traffic } from "../../src/kernel/run/leases.ts";
import type { AccountModel, EndpointModel, Notified } from "./grantors.ts";
import type { World } from "./world.ts";

export interface Leasing extends Notified {
  readonly id: string;
  readonly account: AccountModel;
  readonly endpoint: EndpointModel;
  /** What it needs from its endpoint. */
  need(): Need;
  /** Its messages in the queues, and those that wait. */
  messages(): Traffic;
  /** How many messages it usually needs. */
  usualMessages(): number;
}

const NO_JUDGES: Need = { running: 0, wants: 0, more: false, usual: 0 };
/** Leases are granted per endpoint and organisation, which are objects here: names do not matter. */
const SCOPE = { orgId: "org_simulated", projectId: "pj_simulated" } as const;

export class RunLeasesModel {
  readonly #world: World;
  readonly #run: Leasing;
  #policy: LeaseState = NEW_LEASE;
  #rollouts: LeaseState = NEW_LEASE;
  #messages: LeaseState = NEW_LEASE;
  #asksEndpoint = false;
  #asksAccount = false;

  constructor(world: World, run: Leasing) {
    this.#world = world;
    this.#run = run;
  }

  get #now(): number {
    return this.#world.agenda.now;
  }

  changed(by: "endpoint" | "account"): void {
    if (by === "endpoint") this.#policy = { ...this.#policy, changed: true };
    else {
      this.#rollouts = { ...this.#rollouts, changed: true };
      this.#messages = { ...this.#messages, changed: true };
    }
  }

  /** How many rollouts may begin now. */
  rolloutsRemaining(running: number): number {
    return Math.min(...[this.#policy, this.#rollouts].map((lease) => leaseRemaining(lease, running, this.#now)));
  }

  /** How many messages may be in a queue at once. */
  messages(): number {
    return leaseRemaining(this.#messages, 0, this.#now);
  }

  dispatched(count: number): void {
    this.#policy = afterDispatch(this.#policy, count, this.#now);
  }

  ended(turns: number): void {
    this.#policy = afterEnd(this.#policy, { failure: null, error: null, turns, calls: turns }, this.#now);
  }

  /** When an ask is due; null if none is, or its answer is awaited. */
  nextAt(): number | null {
    const needs = this.#accountNeeds();
    const due = [
      this.#asksEndpoint ? null : askAt(this.#policy, this.#run.need(), this.#now),
      this.#asksAccount ? null : askAt(this.#rollouts, needs.rollouts, this.#now),
      this.#asksAccount ? null : askAt(this.#messages, needs.messages, this.#now),
    ].filter((at) => at !== null);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Asks what is due, then goes on. */
  renew(then: () => void): void {
    this.#renewEndpoint(() => this.#renewAccount(then));
  }

  #renewEndpoint(then: () => void): void {
    const need = this.#run.need();
    if (this.#asksEndpoint || !isDue(this.#policy, need, this.#now)) {
      then();
      return;
    }
    this.#asksEndpoint = true;
    const { outcomes } = this.#policy;
    this.#policy = beginAsk(this.#policy, need, this.#now);
    this.#world.agenda.in(this.#world.latency.request, () => {
      const asked = { ...need, outcomes, scope: SCOPE, endpoint_id: "ep", run_id: this.#run.id, model: "model" };
      this.#policy = takeLease(this.#policy, this.#run.endpoint.ask(asked, this.#run), this.#now);
      this.#asksEndpoint = false;
      then();
    });
  }

  #accountNeeds(): { readonly rollouts: Need; readonly messages: Need } {
    const { running, wants, more } = this.#run.need();
    const permitted = Math.max(running, Math.min(wants, this.#policy.grant?.permits ?? 0));
    const messages = needOf({ read: () => this.#messages }, this.#run.messages(), this.#run.usualMessages());
    return { rollouts: { running, wants: permitted, more }, messages };
  }

  #renewAccount(then: () => void): void {
    const { rollouts, messages } = this.#accountNeeds();
    const due = isDue(this.#rollouts, rollouts, this.#now) || isDue(this.#messages, messages, this.#now);
    if (this.#asksAccount || !due) {
      then();
      return;
    }
    this.#asksAccount = true;
    this.#rollouts = beginAsk(this.#rollouts, rollouts, this.#now);
    this.#messages = beginAsk(this.#messages, messages, this.#now);
    this.#world.agenda.in(this.#world.latency.request, () => {
      const asked = { scope: SCOPE, run_id: this.#run.id, rollouts, messages, judgements: NO_JUDGES };
      const granted = this.#run.account.ask(asked, this.#run);
      this.#rollouts = takeLease(this.#rollouts, granted.rollouts, this.#now);
      this.#messages = takeLease(this.#messages, granted.messages, this.#now);
      this.#asksAccount = false;
      then();
    });
  }
}
