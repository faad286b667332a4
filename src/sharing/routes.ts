/** Routes for links with which anybody can read a run's report. A link is shown once. */

import { Deleted } from "../contract/endpoint.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import type { Scope } from "../contract/scope.ts";
import { type Database, databaseOf } from "../kernel/db/database.ts";
import type { Page } from "../kernel/db/page.ts";
import { getRun } from "../kernel/db/runs.ts";
import { CREATED_HEADERS, creationReply, readCreation, readQuery, storedRow } from "../kernel/http/answer.ts";
import { bearerOf, unauthorized } from "../kernel/http/bearer.ts";
import { Refusal, unwrap } from "../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { listReply, PageQuery } from "../kernel/http/page.ts";
import { refuseStranger } from "../kernel/http/strangers.ts";
import { deleteReportLink, findReportLink, listReportLinks, reportLinkViewOf } from "./queries.ts";
import { CreatedReportLink, ReportLinkList, ReportLinkRequest, SharedReport } from "./wire.ts";

const FOLDER = "/v1/report-links";
const OF_RUN = "/v1/runs/{id}/report-links";

const service = serviceOf<typeof import("./service.ts")>("sharing");

export const reportLinkOperations: readonly Operation[] = [
  {
    id: "createReportLink",
    route: `POST ${OF_RUN}`,
    permission: "runs:write",
    summary: "Create a link that lets anybody read the run's report",
    description:
      "Its `url` is shown only once. It shows name, environment, model, counts and report, but no prompts and completions, until it expires or is revoked.",
    headers: {
      "Idempotency-Key":
        "a repeat with the same key and body creates nothing, and its reply lacks the link, which is shown only once",
    },
    body: { schema: ReportLinkRequest },
    reply: { status: 201, description: "The link", schema: CreatedReportLink, headers: CREATED_HEADERS },
    errors: ["conflict", "idempotency_conflict"],
    handle: createOne,
  },
  {
    id: "listReportLinks",
    route: `GET ${OF_RUN}`,
    permission: "runs:read",
    summary: "List the links to the run's report",
    query: PageQuery,
    reply: { description: "One page of links, without their URLs", schema: ReportLinkList },
    handle: listOfRun,
  },
  {
    id: "deleteReportLink",
    urgent: true,
    route: `DELETE ${FOLDER}/{id}`,
    permission: "runs:write",
    summary: "Revoke a link: it stops working within 5 seconds",
    reply: {
      description: "Revoked",
      schema: Deleted,
      example: { object: "report_link", id: EXAMPLE.reportLink },
    },
    handle: deleteOne,
  },
  {
    id: "getSharedReport",
    route: "GET /v1/shared-report",
    permission: "anybody",
    proof: "report_link",
    reach: "organization",
    summary: "Read the report of a link",
    description:
      "It needs no key, but the link's token, which is after the `#` of its `url`. For a running run it may be a few seconds old.",
    reply: { description: "The report", schema: SharedReport },
    errors: ["unauthorized", "rate_limited"],
    handle: readShared,
  },
];

async function createOne(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, ReportLinkRequest);
  const {
    env,
    var: { caller, scope },
  } = context;
  const of = { scope, caller, runId: pathParam(context, "id") };
  const { value, replayed } = unwrap(await service(context).createReportLink(env, of, request, options));
  return creationReply(context, { folder: FOLDER, status: 201 }, value, replayed);
}

async function listOfRun(context: ApiContext): Promise<Response> {
  readQuery(context, PageQuery);
  const { run } = await storedRow(context, "run", getRun);
  const list = (database: Database, scope: Scope, page: Page) => listReportLinks(database, scope, run.id, page);
  return await listReply(context, "a link", findReportLink, list, reportLinkViewOf);
}

async function deleteOne(context: ApiContext): Promise<Response> {
  const id = pathParam(context, "id");
  if (await deleteReportLink(databaseOf(context.env), context.var.scope, id)) {
    return context.json({ object: "report_link", id, deleted: true });
  }
  throw new Refusal({ code: "not_found", message: `no report link ${id}`, param: "id" });
}

async function readShared(context: ApiContext): Promise<Response> {
  const token = bearerOf(context, "token");
  const report = await service(context).readSharedReport(context.env, token, context.var.now());
  if (report !== null) return context.json(report);
  return await refuseStranger(context, unauthorized("this report does not exist, or its link has expired"));
}
