/** The part of the client about triggers: what begins a run when somebody else's webhook comes. */
import type { Deleted } from "../contract/endpoint.ts";
import type {
  CreatedTrigger,
  TriggerDelivery,
  TriggerPatch,
  TriggerRequestInput,
  TriggerTest,
  TriggerTestRequestInput,
  TriggerView,
} from "../triggers/wire.ts";
import { BillingClient } from "./billing-client.ts";
import type { CallOptions, ListQuery, Page, PageQuery, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";

export class TriggersClient extends BillingClient {
  /** What was made to sign by, where you gave nothing, is said here only. */
  createTrigger(request: TriggerRequestInput, options: PostOptions = {}): Promise<CreatedTrigger> {
    return this.requests.post("/triggers", request, options);
  }

  listTriggers(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<TriggerView>> {
    return this.requests.json(`/triggers${search(query)}`, options);
  }

  triggers(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<TriggerView> {
    return eachOf(query, (page) => this.listTriggers(page, options));
  }

  getTrigger(idOrName: string, options: CallOptions = {}): Promise<TriggerView> {
    return this.requests.json(pathOf(idOrName), options);
  }

  /** Only what is named changes. */
  updateTrigger(idOrName: string, patch: TriggerPatch, options: CallOptions = {}): Promise<TriggerView> {
    return this.requests.patch(pathOf(idOrName), patch, options);
  }

  /** What waits for its turn begins no more; runs that it began go on. */
  deleteTrigger(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathOf(idOrName), options);
  }

  /** One page of what came to it, newest first. */
  listTriggerDeliveries(
    idOrName: string,
    query: PageQuery = {},
    options: CallOptions = {},
  ): Promise<Page<TriggerDelivery>> {
    return this.requests.json(`${pathOf(idOrName)}/deliveries${search(query)}`, options);
  }

  /** All of the log, page after page. */
  triggerDeliveries(
    idOrName: string,
    query: PageQuery = {},
    options: CallOptions = {},
  ): AsyncGenerator<TriggerDelivery> {
    return eachOf(query, (page) => this.listTriggerDeliveries(idOrName, page, options));
  }

  /** What a payload would do. Nothing is begun. */
  testTrigger(idOrName: string, request: TriggerTestRequestInput, options: PostOptions = {}): Promise<TriggerTest> {
    return this.requests.post(`${pathOf(idOrName)}/test`, request, options);
  }
}

function pathOf(idOrName: string): string {
  return `/triggers/${encodeURIComponent(idOrName)}`;
}
