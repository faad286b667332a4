/** Statements by month, such as `2026-11`. */
import type { StatementList, StatementView } from "../billing/wire.ts";
import type { CallOptions, PageQuery } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Statements extends Resource {
  /** Closed months, the latest first: 12 per page, unless `limit` is set. */
  list(query: PageQuery = {}, options: CallOptions = {}): PagePromise<StatementView, StatementList> {
    return this.requests.pages("/statements", query, options, ({ data, has_more }) => {
      return has_more ? { after: data.at(-1)?.month } : null;
    });
  }

  /** The month may be open or closed. */
  get(month: string, options: CallOptions = {}): Promise<StatementView> {
    return this.requests.json(pathTo`/statements/${month}`, options);
  }

  csv(month: string, options: CallOptions = {}): Promise<string> {
    return this.requests.text(pathTo`/statements/${month}/csv`, options);
  }
}
