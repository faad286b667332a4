/** Usage in buckets of hours or days. */
import type { UsageBucket, UsagePage } from "../billing/wire.ts";
import type { CallOptions, UsageQuery } from "./options.ts";
import { type PagePromise, search } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Usage extends Resource {
  /** Buckets, the earliest first. */
  list(query: UsageQuery = {}, options: CallOptions = {}): PagePromise<UsageBucket, UsagePage> {
    return this.requests.pages("/usage", joined(query), options, ({ next_page }) => {
      return next_page === null ? null : { page: next_page };
    });
  }

  /** The page that `list` returns, as CSV. */
  csv(query: UsageQuery = {}, options: CallOptions = {}): Promise<string> {
    return this.requests.text(`/usage/csv${search(joined(query))}`, options);
  }
}

function joined({ group_by, ...query }: UsageQuery): object {
  return { ...query, group_by: group_by?.join(",") || undefined };
}
