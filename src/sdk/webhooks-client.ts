/** The part of the client about webhook endpoints: addresses that are told of events, and what was delivered there. */
import type { Deleted } from "../contract/endpoint.ts";
import type {
  CreatedWebhook,
  Replayed,
  ReplayRequestInput,
  WebhookDelivery,
  WebhookPatch,
  WebhookRequestInput,
  WebhookView,
} from "../webhooks/wire.ts";
import type { CallOptions, DeliveryQuery, ListQuery, Page, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";
import { TriggersClient } from "./triggers-client.ts";

export class WebhooksClient extends TriggersClient {
  /** The secret is said here only. */
  createWebhookEndpoint(request: WebhookRequestInput, options: PostOptions = {}): Promise<CreatedWebhook> {
    return this.requests.post("/webhook-endpoints", request, options);
  }

  listWebhookEndpoints(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<WebhookView>> {
    return this.requests.json(`/webhook-endpoints${search(query)}`, options);
  }

  webhookEndpoints(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<WebhookView> {
    return eachOf(query, (page) => this.listWebhookEndpoints(page, options));
  }

  getWebhookEndpoint(id: string, options: CallOptions = {}): Promise<WebhookView> {
    return this.requests.json(pathOf(id), options);
  }

  /** Only what is named changes. `disabled: false` enables it again. */
  updateWebhookEndpoint(id: string, patch: WebhookPatch, options: CallOptions = {}): Promise<WebhookView> {
    return this.requests.patch(pathOf(id), patch, options);
  }

  deleteWebhookEndpoint(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathOf(id), options);
  }

  /** Another secret, said here only; the one before signs as well for so many seconds. */
  rotateWebhookSecret(
    id: string,
    request: { readonly overlap_s?: number } = {},
    options: PostOptions = {},
  ): Promise<CreatedWebhook> {
    return this.requests.post(`${pathOf(id)}/rotate-secret`, request, options);
  }

  listWebhookDeliveries(
    id: string,
    query: DeliveryQuery = {},
    options: CallOptions = {},
  ): Promise<Page<WebhookDelivery>> {
    return this.requests.json(`${pathOf(id)}/deliveries${search(query)}`, options);
  }

  webhookDeliveries(id: string, query: DeliveryQuery = {}, options: CallOptions = {}): AsyncGenerator<WebhookDelivery> {
    return eachOf(query, (page) => this.listWebhookDeliveries(id, page, options));
  }

  /** Sent again, under the webhook-id it had. */
  replayWebhookDelivery(id: string, delivery: string, options: PostOptions = {}): Promise<WebhookDelivery> {
    return this.requests.post(`${pathOf(id)}/deliveries/${encodeURIComponent(delivery)}/replay`, {}, options);
  }

  /** What ended between these seconds; by default what was given up. */
  replayWebhookDeliveries(id: string, request: ReplayRequestInput, options: PostOptions = {}): Promise<Replayed> {
    return this.requests.post(`${pathOf(id)}/replay`, request, options);
  }

  /** An event of the type webhook.test, for this endpoint alone. */
  testWebhookEndpoint(id: string, options: PostOptions = {}): Promise<WebhookDelivery> {
    return this.requests.post(`${pathOf(id)}/test`, {}, options);
  }
}

function pathOf(id: string): string {
  return `/webhook-endpoints/${encodeURIComponent(id)}`;
}
