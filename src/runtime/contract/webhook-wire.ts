/**
 * What is told to whoever asked to be told. As in wire.ts: everything may come twice, and arguments and results only
 * ever gain optional fields. Times are epoch milliseconds.
 */
import type { JsonObject } from "../../contract/json.ts";
import type { Scope } from "../../contract/scope.ts";
import type { DeliveriesQuery, WebhookBacklog, WebhookDelivery } from "../../contract/webhook.ts";

/** Something that happened, on its way to the addresses that want to know. */
export interface OutboundEvent {
  /** `evt_…`, derived from what happened, so that the same event told twice has the same one. Letters, digits and `_`. */
  readonly id: string;
  /** `run.completed`, `batch.ready`, `replica.down`, … */
  readonly type: string;
  readonly at: number;
  /** Events of one subject (a run's id, a fleet's) are delivered in their order, a later one behind an earlier one. */
  readonly subject: string;
  readonly data: JsonObject;
  /** Where more of it is read, such as `/v1/runs/run_…`: for an event that is too long to be sent whole. */
  readonly path?: string;
}

export interface WebhookOf {
  readonly scope: Scope;
  readonly webhook_id: string;
}

/** Deliveries of a state that came to an end in a span of time. */
export interface ReplayOrder {
  readonly after: number;
  readonly before: number;
  readonly states: readonly ("delivered" | "failed")[];
}

/** One address: what is to be delivered there, and what became of it. */
export interface WebhookRpc {
  /** On disk before it returns. Repeated, it changes nothing. The first makes the object. */
  enqueue(of: WebhookOf, events: readonly OutboundEvent[]): Promise<void>;
  /** Its address, its secrets or what it wants are not what they were. */
  changed(of: WebhookOf): Promise<void>;
  /** Newest first. Null: there is no delivery that the page could come after. */
  deliveries(query: DeliveriesQuery): Promise<{ data: WebhookDelivery[]; has_more: boolean } | null>;
  delivery(id: string): Promise<WebhookDelivery | null>;
  backlog(): Promise<WebhookBacklog>;
  /** Sends one again, under the id it had. Null: it is not in the log. */
  replayOne(id: string): Promise<WebhookDelivery | null>;
  /** How many are sent again: the oldest first, as many as have room. */
  replay(order: ReplayOrder): Promise<number>;
  /** Frees all it keeps. */
  free(): Promise<void>;
}
