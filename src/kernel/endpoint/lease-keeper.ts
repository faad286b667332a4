/** Renews a run's leases when they are due, and stores what is granted. */

import { idsOf, type LogIds, logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";
import type { GrantedLease, LeaseAsk, Need, Outcomes } from "../messages/endpoint-wire.ts";
import { NO_OUTCOMES } from "./health.ts";
import { askAt, beginAsk, isDue, type LeaseState, paceAt, takeLease, undoAsk } from "./run-lease.ts";

/** Where the state of a lease is stored. */
export interface LeaseSlot {
  readonly read: () => LeaseState;
  readonly write: (lease: LeaseState) => void;
}

/** A lease and the need for it. */
export interface Needed {
  readonly slot: LeaseSlot;
  readonly need: Need;
}

/** What a request reports about one lease. */
export type Asked = Need & { readonly outcomes: Outcomes };

/** The run and the endpoint of a request. */
export type Asker = Pick<LeaseAsk, "scope" | "endpoint_id" | "run_id" | "model">;

/** The grantor would grant something else now. */
export function noteChanged({ read, write }: LeaseSlot): void {
  write({ ...read(), changed: true });
}

/** An alarm after this time, although a request is under way: if this object is lost, nothing else would repeat it. */
const LOOK_AGAIN_MS = 10_000;

/** Leases of one grantor are renewed together, as soon as one is due. Never throws; one request at a time. */
export class LeaseKeeper {
  readonly #now: () => number;
  #asking = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** When the next renewal is due, or the bucket has enough for a rollout; null if neither is awaited. */
  nextAt(leases: readonly Needed[]): number | null {
    const now = this.#now();
    const due = leases.flatMap(({ slot, need }) => {
      const lease = slot.read();
      return [this.#askAt(lease, need), paceAt(lease, need, now)].filter((at) => at !== null);
    });
    return due.length === 0 ? null : Math.min(...due);
  }

  #askAt(lease: LeaseState, need: Need): number | null {
    const now = this.#now();
    const at = askAt(lease, need, now);
    return at !== null && this.#asking ? Math.max(at, now + LOOK_AGAIN_MS) : at;
  }

  /** `ask` must return grants in the order of its argument. `whom`: ids for the log. */
  async renew(
    leases: readonly Needed[],
    whom: LogIds,
    ask: (asked: readonly Asked[]) => Promise<readonly GrantedLease[]>,
  ): Promise<void> {
    const now = this.#now();
    if (this.#asking || !leases.some(({ slot, need }) => isDue(slot.read(), need, now))) return;
    this.#asking = true;
    const reported = leases.map(({ slot, need }) => ({ ...need, outcomes: slot.read().outcomes }));
    for (const { slot, need } of leases) slot.write(beginAsk(slot.read(), need, now));
    try {
      const grantedLeases = await ask(reported);
      for (const [index, { slot }] of leases.entries()) {
        const grantedLease = grantedLeases[index];
        if (grantedLease !== undefined) slot.write(takeLease(slot.read(), grantedLease, this.#now()));
      }
    } catch (thrown) {
      logError("no lease: there is no answer", whom, thrown);
      for (const [index, { slot }] of leases.entries()) {
        slot.write(undoAsk(slot.read(), reported[index]?.outcomes ?? NO_OUTCOMES));
      }
    } finally {
      this.#asking = false;
    }
  }

  /** Renews the lease of one endpoint. */
  async renewAt(env: Env, { scope, endpoint_id, run_id, model }: Asker, lease: Needed): Promise<void> {
    await this.renew([lease], idsOf({ scope, run_id, endpoint_id }), (asked) => {
      const endpoint = endpointObject(env, scope, endpoint_id);
      return Promise.all(asked.map((one) => endpoint.ask({ scope, endpoint_id, run_id, model, ...one })));
    });
  }
}
