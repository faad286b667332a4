/** The ledger: every charge, payment and correction of an organisation. */
import type { AdjustmentRequest, LedgerVerification, PostedEntry, TopUpRequestInput } from "../billing/wire.ts";
import type { LedgerEntry } from "../contract/money.ts";
import type { CallOptions, LedgerQuery, OrganizationQuery, PostOptions } from "./options.ts";
import { search } from "./requests.ts";
import { Collection } from "./resource.ts";

/** `list` returns the newest journal entries first. A page may be empty although `has_more` is true. */
export class Ledger extends Collection<LedgerEntry, LedgerQuery> {
  protected readonly path = "/ledger";

  /** Computes the sums of the ledger again. Operators may name any `organization`. */
  verify(query: OrganizationQuery = {}, options: CallOptions = {}): Promise<LedgerVerification> {
    return this.requests.json(`/ledger/verification${search(query)}`, options);
  }

  /** For operators: posts money that an organisation paid in. */
  topUp(request: TopUpRequestInput, options: PostOptions = {}): Promise<PostedEntry> {
    return this.requests.post("/top-ups", request, options);
  }

  /** For operators: posts a refund, a dispute or a correction. */
  adjust(request: AdjustmentRequest, options: PostOptions = {}): Promise<PostedEntry> {
    return this.requests.post("/adjustments", request, options);
  }
}
