/**
 * The audit log. An entry is written before a change begins and its outcome when the reply is known, so a change that was
 * cut off has an entry without one. Reads are not logged, nor what a trainer says at every step.
 */
import * as z from "zod";
import { AuditEntry, AuditList } from "../contract/audit-log.ts";
import { PageLimit, wholeNumber } from "../contract/primitives.ts";
import type { StoredAuditEntry } from "../runtime/contract/account-wire.ts";
import { logError } from "../runtime/kit/log.ts";
import { auditObject } from "../runtime/kit/names.ts";
import { readQuery } from "./answer.ts";
import { Refusal } from "./errors.ts";
import { type ApiContext, type Operation, placeOf } from "./operation.ts";
import { pageOf } from "./page.ts";

/** Of what a path names; no id or name of ours is longer. */
const TARGET_CHARACTERS = 200;
const CREATED = 201;
const Text = z.string().min(1).max(100);
const AuditLogQuery = z.strictObject({
  after: wholeNumber(1).optional().describe("id of the last entry of the page before").meta({ example: "41" }),
  limit: PageLimit,
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
  const entry = await begin(context, operation);
  context.set("auditEntry", entry);
  await carryOut();
  if (entry === null) return;
  const { status, headers } = context.res;
  const made = status < 300 ? (headers.get("location")?.split(/[/=]/).at(-1) ?? null) : null;
  // What was done is done: an entry without its outcome says so. It is written though the caller may have gone away.
  const log = auditObject(context.env, context.var.caller.orgId);
  await context.var.outlive(log.end(entry, { status, made })).catch((thrown: unknown) => {
    logError("audit log", { org_id: context.var.caller.orgId, request_id: context.var.requestId }, thrown);
  });
}

/** Enters what was done by whoever had no key before it, and so no organisation. A kill in between leaves it out. */
export async function logDone(
  { env, var: { now, outlive, requestId } }: ApiContext,
  orgId: string,
  { who, action, made }: { readonly who: string; readonly action: string; readonly made: string },
): Promise<void> {
  const log = auditObject(env, orgId);
  const change = { at: now(), who, action, project_id: null, target: null, request_id: requestId };
  const entering = log
    .begin(change)
    .then((entry) => (entry === null ? undefined : log.end(entry, { status: CREATED, made })));
  await outlive(entering).catch((thrown: unknown) =>
    logError("audit log", { org_id: orgId, request_id: requestId }, thrown),
  );
}

/** Null: the log cannot be written, and the change is one that must not wait for it. */
async function begin(context: ApiContext, { id, reach, urgent }: Operation): Promise<number | null> {
  const { caller, requestId, now } = context.var;
  const change = {
    at: now(),
    who: caller.who,
    action: id,
    project_id: reach === "organization" ? null : context.var.scope.projectId,
    target: context.req.param("id")?.slice(0, TARGET_CHARACTERS) ?? null,
    request_id: requestId,
  };
  let entry: number | null;
  try {
    entry = await auditObject(context.env, caller.orgId).begin(change);
  } catch (thrown) {
    if (urgent !== true) throw thrown;
    logError("audit log", { org_id: context.var.caller.orgId, request_id: context.var.requestId }, thrown);
    return null;
  }
  if (entry !== null) return entry;
  throw new Refusal({ code: "unauthorized", message: "the organisation was deleted", param: null });
}

async function listAuditLog(context: ApiContext): Promise<Response> {
  const { after, limit, who, action, target } = readQuery(context, AuditLogQuery);
  const { orgId, projectId } = context.var.caller;
  // Whoever is of one project reads what was done there.
  const asked = { who: who ?? null, action: action ?? null, target: target ?? null, project_id: projectId };
  const log = auditObject(context.env, orgId);
  const { entries, dropped } = await log.list({ ...asked, before: after ?? null, limit: limit + 1 });
  return context.json({ ...pageOf(entries.map(viewOf), limit), dropped });
}

function viewOf({ id, at, released, ...entry }: StoredAuditEntry): AuditEntry {
  const amount = released === null ? {} : { released: JSON.parse(released) };
  return { object: "audit_entry", id: String(id), at: Math.floor(at / 1000), ...entry, ...amount };
}
