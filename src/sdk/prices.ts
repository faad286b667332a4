/** Lists of prices. A list never changes. */
import type { PriceList, PriceListRequestInput, PriceLists } from "../contract/money.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import type { PagePromise } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Prices extends Resource {
  /** The list in force, then those that come into force later, all on one page; with `version` only that one. */
  list(
    query: { readonly version?: string | undefined } = {},
    options: CallOptions = {},
  ): PagePromise<PriceList, PriceLists> {
    return this.requests.pages("/prices", query, options, () => null);
  }

  /** For operators. */
  create(request: PriceListRequestInput, options: PostOptions = {}): Promise<PriceList> {
    return this.requests.post("/prices", request, options);
  }
}
