/** Routes for deletions and their receipts. */

import { DeletionList, DeletionView, OrganizationDeletion } from "../contract/deletion.ts";
import { EXAMPLE } from "../contract/primitives.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { ask, readBody, readQuery } from "../kernel/http/answer.ts";
import { unwrap } from "../kernel/http/errors.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../kernel/http/operation.ts";
import { PageQuery, pageOf, positionOf } from "../kernel/http/page.ts";
import { deletionViewOf, getDeletion, listDeletions } from "./deletion-queries.ts";

const service = serviceOf<typeof import("./service.ts")>("retention");

const BEGUN = {
  status: 202,
  schema: DeletionView,
  example: { state: "queued", counts: {}, finished_at: null },
} as const;
const WHERE = { location: "where to read it" };
const BEGUN_WHOLE = { ...BEGUN, example: { ...BEGUN.example, kind: "project", target_id: EXAMPLE.project } } as const;

export const deletionOperations: readonly Operation[] = [
  {
    id: "deleteRun",
    route: "DELETE /v1/runs/{id}",
    permission: "runs:write",
    summary: "Delete a run and all it left; asking again gives the same deletion",
    description:
      "From now on the run is 404. A job cancels its rollouts in flight and waits for them; then it deletes the run's objects, files and rows, and the evals of a training run. Refused while an unfinished run rescores this one.",
    reply: {
      ...BEGUN,
      description: "The deletion, which has started",
      headers: WHERE,
    },
    errors: ["conflict"],
    handle: async (context) => deletionReply(context, await ask(context, service(context).deleteRun, asked(context))),
  },
  {
    id: "deleteProject",
    route: "DELETE /v1/projects/{id}",
    permission: "admin",
    reach: "organization",
    summary: "Delete a project, by id or name, with everything in it",
    description:
      "Its keys are refused from now on. A job deletes its runs, datasets, endpoints, secrets, judgements and keys. Needs a key of the whole organisation. The last project can be deleted too.",
    reply: { ...BEGUN_WHOLE, description: "The deletion, which has started", headers: WHERE },
    handle: async (context) => {
      const { caller, now } = context.var;
      const begun = await service(context).deleteProject(context.env, caller, pathParam(context, "id"), now());
      return deletionReply(context, unwrap(begun));
    },
  },
  {
    id: "deleteOrganization",
    route: "DELETE /v1/organization",
    permission: "admin",
    reach: "organization",
    summary: "Delete the organisation of the key with everything in it",
    description:
      "All its keys are refused from now on, including the calling one: keep the id of the deletion, which the operator of the deployment can read. While the organisation has an active key with `operator`, only such a key can delete it: `conflict`.",
    body: { schema: OrganizationDeletion },
    reply: { ...BEGUN_WHOLE, description: "The deletion, which has started", headers: WHERE },
    errors: ["conflict"],
    handle: async (context) => {
      const { caller, now } = context.var;
      const { confirm } = await readBody(context, OrganizationDeletion);
      return deletionReply(
        context,
        unwrap(await service(context).deleteOrganization(context.env, caller, confirm, now())),
      );
    },
  },
  {
    id: "listDeletions",
    route: "GET /v1/deletions",
    permission: "runs:read",
    reach: "organization",
    summary: "List deletions",
    query: PageQuery,
    reply: { description: "One page of deletions; receipts are kept for 90 days", schema: DeletionList },
    handle: listOf,
  },
  {
    id: "getDeletion",
    route: "GET /v1/deletions/{id}",
    permission: ["runs:read", "operator"],
    reach: "organization",
    summary: "Read the progress or the receipt of a deletion",
    reply: { description: "The deletion", schema: DeletionView },
    handle: async (context) => {
      const { caller } = context.var;
      return context.json(unwrap(await service(context).readDeletion(context.env, caller, pathParam(context, "id"))));
    },
  },
];

function asked(context: ApiContext) {
  return { now: context.var.now(), who: context.var.caller.who };
}

/** Lists the deletions of the key's project, or of the whole organisation for a key of the organisation. */
async function listOf(context: ApiContext): Promise<Response> {
  const { after, limit, order } = readQuery(context, PageQuery);
  const [database, { orgId, projectId }] = [databaseOf(context.env), context.var.caller];
  const whose = { orgId, projectId };
  const position = await positionOf(after, "a deletion", (id) => getDeletion(database, whose, id));
  const rows = await listDeletions(database, whose, { after: position, limit: limit + 1, order });
  return context.json(pageOf(rows.map(deletionViewOf), limit));
}

function deletionReply(context: ApiContext, deletion: DeletionView): Response {
  context.header("location", `/v1/deletions/${deletion.id}`);
  return context.json(deletion, 202);
}
