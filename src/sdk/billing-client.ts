/** The part of the client about money: what was used, and what was charged for it. */
import type { StatementList, StatementView } from "../contract/statement.ts";
import type { UsageBucket, UsagePage } from "../contract/usage.ts";
import { LedgerClient } from "./ledger-client.ts";
import type { CallOptions, PageQuery, UsageQuery } from "./options.ts";
import { search } from "./requests.ts";

export class BillingClient extends LedgerClient {
  /** One page of buckets, the earliest first. */
  getUsage({ group_by, ...query }: UsageQuery = {}, options: CallOptions = {}): Promise<UsagePage> {
    return this.requests.json(`/usage${search({ ...query, group_by: group_by?.join(",") || undefined })}`, options);
  }

  /** Every bucket of the time. */
  async *usage(query: UsageQuery = {}, options: CallOptions = {}): AsyncGenerator<UsageBucket> {
    for (let page: number | undefined = query.page; ; ) {
      const { data, next_page } = await this.getUsage({ ...query, page }, options);
      yield* data;
      if (next_page === null) return;
      page = Number(next_page);
    }
  }

  /** The same page as `getUsage` gives, as CSV. */
  usageCsv({ group_by, ...query }: UsageQuery = {}, options: CallOptions = {}): Promise<string> {
    const path = `/usage/csv${search({ ...query, group_by: group_by?.join(",") || undefined })}`;
    return this.requests.read(path, options, (reply) => reply.text());
  }

  /** Closed months, the latest first: 12 a page, unless `limit` says otherwise. */
  listStatements(query: PageQuery = {}, options: CallOptions = {}): Promise<StatementList> {
    return this.requests.json(`/statements${search(query)}`, options);
  }

  /** Of a month such as `2026-11`, closed or not. */
  getStatement(month: string, options: CallOptions = {}): Promise<StatementView> {
    return this.requests.json(`/statements/${encodeURIComponent(month)}`, options);
  }

  statementCsv(month: string, options: CallOptions = {}): Promise<string> {
    return this.requests.read(`/statements/${encodeURIComponent(month)}/csv`, options, (reply) => reply.text());
  }
}
