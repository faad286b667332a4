/** Routes for reviews of rollouts by people, and for how far a run's scores and judges agree with them. */
import { AgreementQuery, AgreementSummaryList, RunAgreement } from "../contract/agreement.ts";
import { Deleted } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import type { Page } from "../kernel/db/page.ts";
import { getRun } from "../kernel/db/runs.ts";
import { answer, ask, readBody, readQuery, storedRow } from "../kernel/http/answer.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { listReply, PageQuery } from "../kernel/http/page.ts";
import { findReview, listReviews, reviewViewOf } from "./queries.ts";
import { ReviewList, ReviewRequest, ReviewView } from "./wire.ts";

const OWN = "/v1/rollouts/{id}/review";

/** CPU of the agreement of a run with 10,000 reviews, in milliseconds. */
const AGREEMENT_COST_MS = 50;

const service = serviceOf<typeof import("./service.ts")>("reviews");

export const reviewOperations: readonly Operation[] = [
  {
    id: "putReview",
    route: `PUT ${OWN}`,
    permission: "rollouts:write",
    summary: "Write your review of an ended rollout",
    description:
      "It replaces your earlier review of this rollout. The rollout and its scores never change: a value that you give is shown next to the rollout's own. A value that differs needs `why`.",
    body: { schema: ReviewRequest },
    reply: { description: "The review", schema: ReviewView },
    errors: ["conflict"],
    handle: async (context) => {
      const request = await readBody(context, ReviewRequest);
      const { caller, now } = context.var;
      return await answer(context, service(context).putReview, request, { who: caller.who, now: now() });
    },
  },
  {
    id: "deleteReview",
    route: `DELETE ${OWN}`,
    permission: "rollouts:write",
    summary: "Delete your review of a rollout",
    reply: { description: "Deleted", schema: Deleted, example: { object: "review", id: EXAMPLE.review } },
    handle: (context) => answer(context, service(context).removeReview, context.var.caller.who),
  },
  {
    id: "listReviews",
    route: "GET /v1/rollouts/{id}/reviews",
    permission: "rollouts:read",
    summary: "List the reviews of a rollout",
    query: PageQuery,
    reply: { description: "One page of reviews", schema: ReviewList },
    handle: listOfRollout,
  },
  {
    id: "listRunReviews",
    route: "GET /v1/runs/{id}/reviews",
    permission: "rollouts:read",
    summary: "List the reviews of all rollouts of a run",
    query: PageQuery,
    reply: { description: "One page of reviews", schema: ReviewList },
    handle: async (context) => {
      readQuery(context, PageQuery);
      const { run } = await storedRow(context, "run", getRun);
      return await replyWith(context, { runId: run.id });
    },
  },
  {
    id: "getAgreement",
    route: "GET /v1/runs/{id}/agreement",
    costMs: AGREEMENT_COST_MS,
    permission: "rollouts:read",
    summary: "Compare a run's scores and judges with the people who reviewed it",
    description:
      "For the reward, each score and each judge: the raw agreement with people, and Cohen's κ with its 95 % interval. If several people reviewed a rollout, the value that most of them gave counts.",
    reply: { description: "The agreement", schema: RunAgreement },
    handle: (context) => answer(context, service(context).readAgreement),
  },
  {
    id: "listAgreements",
    route: "GET /v1/agreements",
    costMs: AGREEMENT_COST_MS,
    permission: "rollouts:read",
    summary: "Compare several runs with the people who reviewed them",
    description:
      "The same for up to 100 runs, without the details. A run without reviews, or that does not exist, is left out.",
    query: AgreementQuery,
    reply: { description: "The runs that have reviews, in the order of the request", schema: AgreementSummaryList },
    handle: async (context) => {
      const { runs } = readQuery(context, AgreementQuery);
      return context.json(await service(context).readAgreements(context.env, context.var.scope, runs));
    },
  },
];

async function listOfRollout(context: ApiContext): Promise<Response> {
  readQuery(context, PageQuery);
  const { runId } = await ask(context, service(context).findReviewed);
  return await replyWith(context, { runId, rolloutId: pathParam(context, "id") });
}

async function replyWith(
  context: ApiContext,
  of: { readonly runId: string; readonly rolloutId?: string },
): Promise<Response> {
  const list = (database: Database, scope: Scope, page: Page) => listReviews(database, scope, of, page);
  return await listReply(context, "a review", findReview, list, reviewViewOf);
}
