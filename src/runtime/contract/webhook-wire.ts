/**
 * What is told to whoever asked to be told. As in wire.ts: everything may come twice, and arguments and results only
 * ever gain optional fields. Times are epoch milliseconds.
 */
import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";

/** Something that happened, on its way to the addresses that want to know. */
export interface OutboundEvent {
  /** `evt_…`, derived from what happened, so that the same event told twice has the same one. No "." in it. */
  readonly id: string;
  /** `run.completed`, `batch.ready`, `replica.down`, … */
  readonly type: string;
  readonly at: number;
  /** Events of one subject (a run's id, a fleet's) are delivered in their order, a later one behind an earlier one. */
  readonly subject: string;
  readonly data: JsonObject;
}

/** One address: what is to be delivered there, and what became of it. */
export interface WebhookRpc {
  /** On disk before it returns. Repeated, it changes nothing. */
  enqueue(of: { readonly scope: Scope; readonly webhook_id: string }, events: readonly OutboundEvent[]): Promise<void>;
  /** Its address, its secrets or what it wants are not what they were. */
  changed(of: { readonly scope: Scope; readonly webhook_id: string }): Promise<void>;
}
