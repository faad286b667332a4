/** What a run asks of the object of its organisation, and what it is granted. */
import type { Scope } from "../../contract/scope.ts";
import type { Grant, Need } from "./endpoint-wire.ts";

export interface ShareAsk {
  readonly scope: Scope;
  readonly run_id: string;
  /** Rollouts at once. */
  readonly rollouts: Need;
  /** Messages in each kind of shared queue at once. */
  readonly messages: Need;
}

export interface ShareGrants {
  readonly rollouts: Grant;
  readonly messages: Grant;
}

export interface AccountRpc {
  /** What the run may do until it asks again, or its lease ends. */
  ask(asked: ShareAsk): Promise<ShareGrants>;
  /** The organisation's limits are not what they were. */
  changed(): Promise<void>;
}
