/** Deletions: what is taken away for good, by a job, and the receipts of it. */
import { DeletionList, DeletionView } from "../contract/deletion.ts";
import { deletionViewOf, getDeletion, listDeletions } from "../db/deletions.ts";
import { answer, ask } from "./answer.ts";
import type { ApiContext, Operation } from "./operation.ts";
import { listReply, PageQuery } from "./page.ts";

const BEGUN = {
  status: 202,
  schema: DeletionView,
  example: { state: "queued", counts: {}, finished_at: null },
} as const;

export const deletionOperations: readonly Operation[] = [
  {
    id: "deleteRun",
    route: "DELETE /v1/runs/{id}",
    summary: "Delete a run and all it left; asking again gives the same deletion",
    description:
      "From here on the run is 404. A job cancels what is in flight and waits for its end; then it removes the run's objects, its files, its rows, and the evals that a training run began. Refused while an unfinished run scores what this one left.",
    reply: {
      ...BEGUN,
      description: "The deletion, which goes on by itself",
      headers: { location: "where it is read" },
    },
    errors: ["conflict"],
    handle: async (context) =>
      deletionReply(context, await ask(context, context.var.services.deleteRun, asked(context))),
  },
  {
    id: "listDeletions",
    route: "GET /v1/deletions",
    summary: "List deletions",
    query: PageQuery,
    reply: { description: "One page of deletions; receipts are kept for 90 days", schema: DeletionList },
    handle: (context) => listReply(context, "a deletion", getDeletion, listDeletions, deletionViewOf),
  },
  {
    id: "getDeletion",
    route: "GET /v1/deletions/{id}",
    summary: "Read how far a deletion is, or its receipt",
    reply: { description: "The deletion", schema: DeletionView },
    handle: (context) => answer(context, context.var.services.readDeletion),
  },
];

function asked(context: ApiContext) {
  return { now: context.var.now(), who: "key" };
}

function deletionReply(context: ApiContext, deletion: DeletionView): Response {
  context.header("location", `/v1/deletions/${deletion.id}`);
  return context.json(deletion, 202);
}
