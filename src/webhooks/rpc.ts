/**
 * The interface of a webhook endpoint's object. Every message may arrive twice; arguments and results only gain
 * optional fields. Times are epoch milliseconds.
 */

import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import type { DeliveriesQuery, WebhookBacklog, WebhookDelivery } from "./wire.ts";

export interface WebhookOf {
  readonly scope: Scope;
  readonly webhook_id: string;
}

/** Deliveries with one of these states that ended between two times. */
export interface ReplayOrder {
  readonly after: number;
  readonly before: number;
  readonly states: readonly ("delivered" | "failed")[];
}

/** The queue and the log of one endpoint. */
export interface WebhookRpc {
  /** On disk before it returns. A repeat changes nothing. The first call creates the object's state. */
  enqueue(of: WebhookOf, events: readonly OutboundEvent[]): Promise<void>;
  /** The endpoint's address, secrets or event filter have changed. */
  changed(of: WebhookOf): Promise<void>;
  /** Newest first. Null: `after` is not the id of a delivery. */
  deliveries(query: DeliveriesQuery): Promise<{ data: WebhookDelivery[]; has_more: boolean } | null>;
  delivery(id: string): Promise<WebhookDelivery | null>;
  backlog(): Promise<WebhookBacklog>;
  /** Sends a delivery again, with the same id. Null: it is not in the log. */
  replayOne(id: string): Promise<WebhookDelivery | null>;
  /** Returns how many deliveries are sent again: the oldest first, as many as the queue has space for. */
  replay(order: ReplayOrder): Promise<number>;
  /** Deletes everything that the object stores. */
  free(): Promise<void>;
}

export function webhookObject(env: Env, scope: Scope, webhookId: string): WebhookRpc {
  const stub: unknown = env.WEBHOOK.getByName(`${folderOf(scope)}${webhookId}`);
  return stub as WebhookRpc;
}
