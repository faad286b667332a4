/**
 * The audit log. An entry is written before a change begins and its outcome when the reply is known, so a change that was
 * cut off has an entry without one. Reads are not logged, nor what a trainer says at every step.
 */
import * as z from "zod";
import { AuditEntry, AuditList } from "../contract/audit-log.ts";
import { wholeNumber } from "../contract/primitives.ts";
import type { StoredAuditEntry } from "../runtime/contract/account-wire.ts";
import { logError } from "../runtime/kit/log.ts";
import { auditObject } from "../runtime/kit/names.ts";
import { readQuery } from "./answer.ts";
import { type ApiContext, type Operation, placeOf } from "./operation.ts";
import { pageOf } from "./page.ts";

/** Of what a path names; no id or name of ours is longer. */
const TARGET_CHARACTERS = 200;
const Text = z.string().min(1).max(100);
const AuditLogQuery = z.strictObject({
  after: wholeNumber(1).optional().describe("id of the last entry of the page before").meta({ example: "41" }),
  limit: wholeNumber(1, 100).default(20),
  who: Text.optional()
    .describe("only what this key or person did")
    .meta({ example: AuditEntry.shape.who.meta()?.["example"] }),
  action: Text.optional().describe("only this operation").meta({ example: "cancelRun" }),
  target: Text.optional()
    .describe("only what was done to this")
    .meta({ example: AuditEntry.shape.target.meta()?.["example"] }),
});

export const auditOperations: readonly Operation[] = [
  {
    id: "listAuditLog",
    route: "GET /v1/audit-log",
    permission: "audit:read",
    reach: "organization",
    summary: "Read who changed what in the organisation, newest first",
    description: "A key of one project reads what was done in that project, or by keys of it.",
    query: AuditLogQuery,
    reply: { description: "A page of entries", schema: AuditList },
    handle: listAuditLog,
  },
];

/** Carries the operation out between its entry and the outcome of that, if it changes anything. */
export async function withAudit(
  context: ApiContext,
  operation: Operation,
  carryOut: () => Promise<void>,
): Promise<void> {
  if (placeOf(operation).method === "GET" || operation.unlogged === true) {
    await carryOut();
    return;
  }
  const { caller, requestId, now } = context.var;
  const log = auditObject(context.env, caller.orgId);
  const entry = await log.begin({
    at: now(),
    who: caller.who,
    action: operation.id,
    project_id: operation.reach === "organization" ? caller.projectId : context.var.scope.projectId,
    target: context.req.param("id")?.slice(0, TARGET_CHARACTERS) ?? null,
    request_id: requestId,
  });
  await carryOut();
  const { status, headers } = context.res;
  const target = headers.get("location")?.split("/").at(-1) ?? null;
  // What was done is done: an entry without its outcome says so.
  await log.end(entry, { status, target }).catch((thrown: unknown) => logError("audit log", requestId, thrown));
}

async function listAuditLog(context: ApiContext): Promise<Response> {
  const { after, limit, who, action, target } = readQuery(context, AuditLogQuery);
  const asked = { who: who ?? null, action: action ?? null, target: target ?? null };
  const { orgId, projectId: project_id } = context.var.caller;
  const log = auditObject(context.env, orgId);
  const { entries, dropped } = await log.list({ ...asked, project_id, before: after ?? null, limit: limit + 1 });
  return context.json({ ...pageOf(entries.map(viewOf), limit), dropped });
}

function viewOf({ id, at, ...entry }: StoredAuditEntry): AuditEntry {
  return { object: "audit_entry", id: String(id), at: Math.floor(at / 1000), ...entry };
}
