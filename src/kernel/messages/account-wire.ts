/** What runs request from the object of their organisation, and what it grants. */
import type { Scope } from "../../contract/scope.ts";
import type { GrantedLease, Need } from "./endpoint-wire.ts";

export interface AccountLeaseAsk {
  readonly scope: Scope;
  readonly run_id: string;
  /** Rollouts at the same time. */
  readonly rollouts: Need;
  /** Messages in each kind of shared queue at the same time, except for judgements. */
  readonly messages: Need;
  /** Scoring groups whose judges are being called, or that are in a queue for it, at the same time. */
  readonly judgements: Need;
}

export interface GrantedLeases {
  readonly rollouts: GrantedLease;
  readonly messages: GrantedLease;
  readonly judgements: GrantedLease;
}

export interface AccountRpc {
  /** What the run may do until it asks again or its lease ends. */
  ask(asked: AccountLeaseAsk): Promise<GrantedLeases>;
  /**
   * The organisation's limits, billing or budgets have changed, or a drain has begun or ended. Returns how many rollouts
   * its runs may have at once by their leases. Objects of an earlier release return nothing.
   */
  changed(): Promise<{ readonly granted: number } | undefined>;
  /** Deletes everything about the organisation. False: a copy is still being written to the stores; call it again. */
  forget(): Promise<boolean>;
}
