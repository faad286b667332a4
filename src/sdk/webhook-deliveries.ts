/** The deliveries to a webhook endpoint. */
import type { WebhookDelivery } from "../webhooks/wire.ts";
import type { CallOptions, DeliveryQuery, PostOptions } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class WebhookDeliveries extends Resource {
  /** Newest first. */
  list(endpoint: string, query: DeliveryQuery = {}, options: CallOptions = {}): PagePromise<WebhookDelivery> {
    return this.requests.list(pathTo`/webhook-endpoints/${endpoint}/deliveries`, query, options);
  }

  /** Sends it again, under the same `webhook-id`. */
  replay(endpoint: string, delivery: string, options: PostOptions = {}): Promise<WebhookDelivery> {
    return this.requests.post(pathTo`/webhook-endpoints/${endpoint}/deliveries/${delivery}/replay`, {}, options);
  }
}
