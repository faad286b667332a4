/**
 * What is told to whoever asked to be told. As in wire.ts: everything may come twice, and arguments and results only
 * ever gain optional fields. Times are epoch milliseconds.
 */

import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import type { DeliveriesQuery, WebhookBacklog, WebhookDelivery } from "./wire.ts";

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

export function webhookObject(env: Env, scope: Scope, webhookId: string): WebhookRpc {
  const stub: unknown = env.WEBHOOK.getByName(`${folderOf(scope)}${webhookId}`);
  return stub as WebhookRpc;
}
