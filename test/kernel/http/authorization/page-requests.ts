/** The same for signing in to the web page, and for shared links. */
import { newCode, newReportLink, newSession } from "./page-things.ts";
import type { Request } from "./requests.ts";

export const PAGE_REQUESTS: Readonly<Record<string, Request>> = {
  createSignInCode: { ask: () => ({ path: "/v1/sign-in-codes" }) },
  createSession: {
    ask: ({ code }) => ({ path: "/v1/session", body: { code } }),
    anew: async ({ door, things }) => ({ code: await newCode(door, things.key) }),
  },
  listSessions: { ask: () => ({ path: "/v1/sessions" }) },
  revokeSession: {
    ask: ({ session }) => ({ path: `/v1/sessions/${session}` }),
    anew: async ({ door, things }) => ({ session: await newSession(door, things.key) }),
  },
  createReportLink: { ask: ({ run }) => ({ path: `/v1/runs/${run}/report-links`, body: {} }) },
  listReportLinks: { ask: ({ run }) => ({ path: `/v1/runs/${run}/report-links` }) },
  getSharedReport: { ask: ({ report_token }) => ({ path: "/v1/shared-report", bearer: report_token }) },
  deleteReportLink: {
    ask: ({ report_link }) => ({ path: `/v1/report-links/${report_link}` }),
    anew: ({ door, things }) => newReportLink(door, things.run),
  },
  // Last, because after it a caller with a session has none.
  deleteSession: { ask: () => ({ path: "/v1/session" }) },
};
