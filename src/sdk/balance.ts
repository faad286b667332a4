/** The balance of an organisation. */
import type { BalanceView } from "../billing/wire.ts";
import type { CallOptions, OrganizationQuery } from "./options.ts";
import { search } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Balance extends Resource {
  /** Operators may name any `organization`. */
  get(query: OrganizationQuery = {}, options: CallOptions = {}): Promise<BalanceView> {
    return this.requests.json(`/balance${search(query)}`, options);
  }
}
