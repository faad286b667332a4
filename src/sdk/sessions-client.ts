/** The part of the client about signing in to the web page, and about links to reports. */
import type { WhoAmI } from "../contract/accounts.ts";
import type { Deleted } from "../contract/endpoint.ts";
import type { SessionRequest, SessionView, SignInCode } from "../contract/web-session.ts";
import type { CreatedReportLink, ReportLinkRequestInput, ReportLinkView, SharedReport } from "../sharing/wire.ts";
import type { CallOptions, ListQuery, Page, PostOptions } from "./options.ts";
import { ClientPart, eachOf, search } from "./requests.ts";

export class SessionsClient extends ClientPart {
  /** A code by which a browser signs in as this key, once, within 5 minutes; `url` opens the page with it. */
  createSignInCode(options: PostOptions = {}): Promise<SignInCode> {
    return this.requests.post("/sign-in-codes", {}, options);
  }

  /** For a page of the platform itself: its browser is signed in by a code or a key, and asks by its cookie from then on. */
  signIn(request: SessionRequest, options: PostOptions = {}): Promise<WhoAmI> {
    return this.requests.post("/session", request, options);
  }

  /** For the same: the browser is signed out. */
  signOut(options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete("/session", options);
  }

  /** One page of the browsers that are signed in. */
  listSessions(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<SessionView>> {
    return this.requests.json(`/sessions${search(query)}`, options);
  }

  sessions(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<SessionView> {
    return eachOf(query, (page) => this.listSessions(page, options));
  }

  /** Within 5 seconds the session is refused everywhere. */
  revokeSession(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/sessions/${encodeURIComponent(id)}`, options);
  }

  /** `url` is what anybody reads the run's report by, said here only: null in the answer to a repeat. */
  createReportLink(
    runId: string,
    request: ReportLinkRequestInput = {},
    options: PostOptions = {},
  ): Promise<CreatedReportLink> {
    return this.requests.post(linksOf(runId), request, options);
  }

  /** One page of the links to the run's report. */
  listReportLinks(runId: string, query: ListQuery = {}, options: CallOptions = {}): Promise<Page<ReportLinkView>> {
    return this.requests.json(`${linksOf(runId)}${search(query)}`, options);
  }

  reportLinks(runId: string, query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<ReportLinkView> {
    return eachOf(query, (page) => this.listReportLinks(runId, page, options));
  }

  /** Within 5 seconds nobody reads the report by it. */
  deleteReportLink(id: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(`/report-links/${encodeURIComponent(id)}`, options);
  }

  /** The report that a link leads to; no key is needed. `token` is what stands behind the `#` of its address. */
  sharedReport(token: string, options: CallOptions = {}): Promise<SharedReport> {
    // Whatever stands in an address fits into a header so, and a token as it is.
    const headers = { authorization: `Bearer ${encodeURIComponent(token)}` };
    return this.requests.json("/shared-report", { ...options, headers });
  }
}

function linksOf(runId: string): string {
  return `/runs/${encodeURIComponent(runId)}/report-links`;
}
