/** The deliveries that arrived at a trigger. */
import type { TriggerDelivery } from "../triggers/wire.ts";
import type { CallOptions, PageQuery } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class TriggerDeliveries extends Resource {
  /** Newest first. */
  list(trigger: string, query: PageQuery = {}, options: CallOptions = {}): PagePromise<TriggerDelivery> {
    return this.requests.list(pathTo`/triggers/${trigger}/deliveries`, query, options);
  }
}
