/** The route that reads the audit log. Its entries are written around each change (src/kernel/http/audit.ts). */
import * as z from "zod";
import { PageLimit, wholeNumber } from "../../contract/primitives.ts";
import { readQuery } from "../../kernel/http/answer.ts";
import type { ApiContext, Operation } from "../../kernel/http/operation.ts";
import { pageOf } from "../../kernel/http/page.ts";
import { auditObject, type StoredAuditEntry } from "../rpc.ts";
import { AuditEntry, AuditList } from "../wire.ts";

const Text = z.string().min(1).max(100);
const AuditLogQuery = z.strictObject({
  after: wholeNumber(1).optional().describe("id of the last entry of the previous page").meta({ example: "41" }),
  limit: PageLimit,
  who: Text.optional()
    .describe("only entries of this key or person")
    .meta({ example: AuditEntry.shape.who.meta()?.["example"] }),
  action: Text.optional().describe("only this operation").meta({ example: "cancelRun" }),
  target: Text.optional()
    .describe("only entries about this object")
    .meta({ example: AuditEntry.shape.target.meta()?.["example"] }),
});

export const auditOperations: readonly Operation[] = [
  {
    id: "listAuditLog",
    route: "GET /v1/audit-log",
    permission: "audit:read",
    reach: "organization",
    summary: "Read who changed what in the organisation, newest first",
    query: AuditLogQuery,
    reply: { description: "A page of entries", schema: AuditList },
    handle: listAuditLog,
  },
];

async function listAuditLog(context: ApiContext): Promise<Response> {
  const { after, limit, who, action, target } = readQuery(context, AuditLogQuery);
  const { orgId, projectId } = context.var.caller;
  // A caller of one project sees only that project's entries.
  const asked = { who: who ?? null, action: action ?? null, target: target ?? null, project_id: projectId };
  const log = auditObject(context.env, orgId);
  const { entries, dropped } = await log.list({ ...asked, before: after ?? null, limit: limit + 1 });
  return context.json({ ...pageOf(entries.map(viewOf), limit), dropped });
}

function viewOf({ id, at, released, ...entry }: StoredAuditEntry): AuditEntry {
  const amount = released === null ? {} : { released: JSON.parse(released) };
  return { object: "audit_entry", id: String(id), at: Math.floor(at / 1000), ...entry, ...amount };
}
