/** Links with which anybody can read the report of a run. */
import type { Deleted } from "../contract/endpoint.ts";
import type { CreatedReportLink, ReportLinkRequestInput, ReportLinkView, SharedReport } from "../sharing/wire.ts";
import type { CallOptions, ListQuery, PostOptions } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class ReportLinks extends Resource {
  /** `url` is the link. It is shown only here, and null in the answer to a repeated call. */
  create(runId: string, request: ReportLinkRequestInput = {}, options: PostOptions = {}): Promise<CreatedReportLink> {
    return this.requests.post(pathTo`/runs/${runId}/report-links`, request, options);
  }

  list(runId: string, query: ListQuery = {}, options: CallOptions = {}): PagePromise<ReportLinkView> {
    return this.requests.list(pathTo`/runs/${runId}/report-links`, query, options);
  }

  /** Within 5 seconds the link stops working. */
  delete(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathTo`/report-links/${id}`, options);
  }

  /** The report of a link; no key is needed. `token` is the part of the link after the `#`. */
  read(token: string, options: CallOptions = {}): Promise<SharedReport> {
    // Encoded, since a mistyped token may have characters that a header cannot have.
    const headers = { authorization: `Bearer ${encodeURIComponent(token)}` };
    return this.requests.json("/shared-report", { ...options, headers });
  }
}
