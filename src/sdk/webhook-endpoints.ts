/** Webhook endpoints: addresses to which the platform sends events. */
import type {
  CreatedWebhook,
  Replayed,
  ReplayRequestInput,
  WebhookDelivery,
  WebhookPatch,
  WebhookRequestInput,
  WebhookView,
} from "../webhooks/wire.ts";
import type { PostOptions } from "./options.ts";
import { Editable } from "./resource.ts";
import { WebhookDeliveries } from "./webhook-deliveries.ts";

/** `create` shows the signing secret, only in its answer. `update` with `disabled: false` enables an endpoint again. */
export class WebhookEndpoints extends Editable<WebhookView, WebhookRequestInput, WebhookPatch, CreatedWebhook> {
  protected readonly path = "/webhook-endpoints";
  readonly deliveries: WebhookDeliveries = new WebhookDeliveries(this.requests);

  /** Creates a new signing secret, shown only here; the old one also signs for `overlap_s` seconds. */
  rotateSecret(
    id: string,
    request: { readonly overlap_s?: number } = {},
    options: PostOptions = {},
  ): Promise<CreatedWebhook> {
    return this.requests.post(`${this.at(id)}/rotate-secret`, request, options);
  }

  /** Sends every delivery again that ended in the given interval (seconds); by default those that were given up. */
  replay(id: string, request: ReplayRequestInput, options: PostOptions = {}): Promise<Replayed> {
    return this.requests.post(`${this.at(id)}/replay`, request, options);
  }

  /** Sends an event of the type `webhook.test` to this endpoint alone. */
  test(id: string, options: PostOptions = {}): Promise<WebhookDelivery> {
    return this.requests.post(`${this.at(id)}/test`, {}, options);
  }
}
