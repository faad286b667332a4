/** What runs ask of the object of their organisation, and what they are told. */
import type { Scope } from "../../contract/scope.ts";
import type { Grant, Need } from "./endpoint-wire.ts";

export interface ShareAsk {
  readonly scope: Scope;
  readonly run_id: string;
  /** Rollouts at once. */
  readonly rollouts: Need;
  /** Messages in each kind of shared queue at once, but for judgements. */
  readonly messages: Need;
  /** Units whose judges are asked, or that are in a queue for it, at once. */
  readonly judgements: Need;
}

export interface ShareGrants {
  readonly rollouts: Grant;
  readonly messages: Grant;
  readonly judgements: Grant;
}

export interface AccountRpc {
  /** What the run may do until it asks again, or its lease ends. */
  ask(asked: ShareAsk): Promise<ShareGrants>;
  /** The organisation's limits, its billing or its budgets are not what they were. */
  changed(): Promise<void>;
  /** Nothing of the organisation is kept. False: a copy of it is on its way to the stores, and it is to be asked again. */
  forget(): Promise<boolean>;
}
