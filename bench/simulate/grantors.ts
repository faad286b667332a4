/** Endpoints and organisations: they grant leases by the functions that their objects use. */

import {
  type AccountLeaseState,
  askLeases,
  noteRunsNotified,
  runsToNotify,
} from "../../src/kernel/account/lease-state.ts";
import { MESSAGES_DEPLOYED } from "../../src/kernel/account/leases.ts";
import {
  ask,
  type EndpointState,
  isOutdated,
  newEndpoint,
  noteNotified,
  toNotify,
} from "../../src/kernel/endpoint/lease-state.ts";
import type { AccountLeaseAsk, GrantedLeases } from "../../src/kernel/messages/account-wire.ts";
import type { GrantedLease, LeaseAsk } from "../../src/kernel/messages/endpoint-wire.ts";
import type { Meter } from "./traffic.ts";
import type { World } from "./world.ts";

/** A run that may be notified that it would be granted something else. */
export interface Notified {
  changed(by: "endpoint" | "account"): void;
}

export class EndpointModel {
  readonly #world: World;
  readonly meter: Meter;
  #state: EndpointState;
  #limitsAt = Number.NEGATIVE_INFINITY;
  readonly #runs = new Map<string, Notified>();

  /** `maxConcurrent` null: no limit. */
  constructor(world: World, maxConcurrent: number | null) {
    this.#world = world;
    this.meter = world.traffic.meter("endpoint");
    this.#state = newEndpoint({ max_concurrent: maxConcurrent, rpm: null });
  }

  ask(asked: LeaseAsk, run: Notified): GrantedLease {
    const { agenda, traffic } = this.#world;
    const { now } = agenda;
    traffic.request("endpoint", this.meter, now);
    if (isOutdated(this.#state.limits, now - this.#limitsAt)) {
      this.#limitsAt = now;
      traffic.count("d1 read: leases", now);
    }
    const { state, grant } = ask(this.#state, asked, now);
    this.#runs.set(asked.run_id, run);
    const ids = toNotify(state, now);
    this.#state = noteNotified(state, ids, now);
    for (const id of ids) agenda.in(this.#world.latency.request / 2, () => this.#runs.get(id)?.changed("endpoint"));
    traffic.count("rows", now, 2);
    return grant;
  }
}

export class AccountModel {
  readonly #world: World;
  readonly meter: Meter;
  /** Of its audit object. */
  readonly #audit: Meter;
  #state: AccountLeaseState;
  readonly #runs = new Map<string, Notified>();

  /** `messages`: the most of each kind that it may have in the queues. */
  constructor(world: World, messages: number = MESSAGES_DEPLOYED) {
    this.#world = world;
    this.meter = world.traffic.meter("account");
    this.#audit = world.traffic.meter("audit");
    const limits = { rollouts: Number.POSITIVE_INFINITY, messages, judgements: messages };
    this.#state = { limits, runs: {} };
  }

  ask(asked: AccountLeaseAsk, run: Notified): GrantedLeases {
    const { agenda, traffic } = this.#world;
    const { now } = agenda;
    traffic.request("account", this.meter, now);
    const { state, grants } = askLeases(this.#state, asked, now);
    this.#runs.set(asked.run_id, run);
    const ids = runsToNotify(state, now);
    this.#state = noteRunsNotified(state, ids, now);
    for (const id of ids) agenda.in(this.#world.latency.request / 2, () => this.#runs.get(id)?.changed("account"));
    traffic.count("rows", now, 1);
    return grants;
  }

  /** A run is created. */
  enter(count: number): void {
    this.#world.traffic.request("audit", this.#audit, this.#world.agenda.now, count);
  }

  /** An isolate asks for the version of its settings. */
  askVersion(count: number): void {
    const { agenda, traffic } = this.#world;
    traffic.request("audit", this.#audit, agenda.now, count);
    traffic.count("asks for versions", agenda.now, count);
  }

  /** The run reports its ended rollouts. */
  settle(): void {
    const { agenda, traffic } = this.#world;
    traffic.request("account", this.meter, agenda.now);
  }
}
