/** The same for signing in to the web page, for shared links and for reviews. */
import { newCode, newReportLink, newSession } from "./page-things.ts";
import type { Request } from "./requests.ts";

export const PAGE_REQUESTS: Readonly<Record<string, Request>> = {
  createSignInCode: { ask: () => ({ path: "/v1/sign-in-codes" }) },
  createSession: {
    ask: ({ code }) => ({ path: "/v1/session", body: { code } }),
    anew: async ({ api, things }) => ({ code: await newCode(api, things.key) }),
  },
  listSessions: { ask: () => ({ path: "/v1/sessions" }) },
  revokeSession: {
    ask: ({ session }) => ({ path: `/v1/sessions/${session}` }),
    anew: async ({ api, things }) => ({ session: await newSession(api, things.key) }),
  },
  putReview: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/review`, body: { mark: "good" } }) },
  listReviews: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/reviews` }) },
  listRunReviews: { ask: ({ run }) => ({ path: `/v1/runs/${run}/reviews` }) },
  listAgreements: { ask: ({ run }) => ({ path: `/v1/agreements?runs=${run}` }) },
  getAgreement: { ask: ({ run }) => ({ path: `/v1/runs/${run}/agreement` }) },
  deleteReview: { ask: ({ rollout }) => ({ path: `/v1/rollouts/${rollout}/review` }) },
  createReportLink: { ask: ({ run }) => ({ path: `/v1/runs/${run}/report-links`, body: {} }) },
  listReportLinks: { ask: ({ run }) => ({ path: `/v1/runs/${run}/report-links` }) },
  getSharedReport: { ask: ({ report_token }) => ({ path: "/v1/shared-report", bearer: report_token }) },
  deleteReportLink: {
    ask: ({ report_link }) => ({ path: `/v1/report-links/${report_link}` }),
    anew: ({ api, things }) => newReportLink(api, things.run),
  },
  // Last, because after it a caller with a session has none.
  deleteSession: { ask: () => ({ path: "/v1/session" }) },
};
