/** What isolates and runs ask of the objects of an organisation, and what they are told. */
import type { Scope } from "../../contract/scope.ts";
import type { Grant, Need } from "./endpoint-wire.ts";

export interface RequestsAsk {
  /** Requests a minute. */
  readonly limit: number;
  /** How many are asked for. */
  readonly want: number;
  /** Of the blocks before: requests that were not made. */
  readonly unused: number;
}

export interface RequestsGrant {
  readonly granted: number;
  /** What is left to be granted now. */
  readonly remaining: number;
  /** Milliseconds until one more may be granted; 0 if it may be now. */
  readonly retryMs: number;
  /** Milliseconds until the whole limit is there again. */
  readonly resetMs: number;
}

/** A change that is about to be made. */
export interface AuditChange {
  /** Epoch milliseconds. */
  readonly at: number;
  /** `key_…`, `per_…`, or the run whose trainer it is. */
  readonly who: string;
  /** The id of the operation, such as `createKey`. */
  readonly action: string;
  readonly project_id: string | null;
  /** What the path names; null for something that is yet to be made. */
  readonly target: string | null;
  readonly request_id: string;
}

export interface AuditOutcome {
  /** Of the reply. */
  readonly status: number;
  /** What was made; null if nothing was. */
  readonly made: string | null;
  /** What was released of the holds of a run's lost calls: micro-dollars, and for how many calls. */
  readonly released?: { readonly calls: number; readonly micros: number };
}

export interface AuditQuery {
  readonly before: number | null;
  readonly limit: number;
  /** Null: any. */
  readonly who: string | null;
  readonly action: string | null;
  readonly target: string | null;
  readonly project_id: string | null;
}

// A type and not an interface: SQLite's rows are records by name.
export type StoredAuditEntry = {
  readonly id: number;
  readonly at: number;
  readonly who: string;
  readonly action: string;
  readonly project_id: string | null;
  readonly target: string | null;
  readonly made: string | null;
  readonly request_id: string;
  /** Of the reply; null while the change is under way, and for good where the platform stopped in the middle. */
  readonly status: number | null;
  /** JSON. */
  readonly released: string | null;
};

export interface AuditPage {
  readonly entries: StoredAuditEntry[];
  /** Older entries that are kept no longer. */
  readonly dropped: number;
}

/** What a run asks of the object of its organisation. */
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
