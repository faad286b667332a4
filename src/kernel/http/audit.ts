/**
 * Writes changes to the audit log. An entry is written before a change begins, and its outcome when the reply is known.
 * So a change that was interrupted has an entry without an outcome. Reads are not logged, nor are the calls that a
 * trainer makes at every step, nor the parts of an upload.
 */
import { accounts, noteSettingsChanged } from "../kit/account-hooks.ts";
import { logError } from "../kit/log.ts";
import { Refusal } from "./errors.ts";
import { type ApiContext, type Operation, placeOf } from "./operation.ts";

/** Maximum length of a target from the path; no valid id or name is longer. */
const TARGET_CHARACTERS = 200;
const CREATED = 201;

/** Runs the operation; if it changes something, writes its entry before and the outcome after. */
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
  if (entry === null) {
    // The change is urgent, and the log may not have noted that it began. The caller may disconnect.
    await context.var.outlive(carryOutAndNote(context, carryOut));
    return;
  }
  await carryOut();
  const { status, headers } = context.res;
  const made = status < 300 ? (headers.get("location")?.split(/[/=]/).at(-1) ?? null) : null;
  const { orgId } = context.var.caller;
  // The change is done: if the outcome cannot be written, the entry stays without one. The caller may disconnect.
  const ending = accounts().endChange(context.env, orgId, entry, { status, made });
  await context.var.outlive(ending).catch((thrown: unknown) => {
    logError("audit log", { org_id: orgId, request_id: context.var.requestId }, thrown);
  });
}

/** Logs what a caller without a key did, and so without an organisation before. A kill in between leaves it out. */
export async function logDone(
  { env, var: { now, outlive, requestId } }: ApiContext,
  orgId: string,
  { who, action, made }: { readonly who: string; readonly action: string; readonly made: string },
): Promise<void> {
  const change = { at: now(), who, action, project_id: null, target: null, request_id: requestId };
  const { beginChange, endChange } = accounts();
  const entering = beginChange(env, orgId, change).then((entry) =>
    entry === null ? undefined : endChange(env, orgId, entry, { status: CREATED, made }),
  );
  await outlive(entering).catch((thrown: unknown) =>
    logError("audit log", { org_id: orgId, request_id: requestId }, thrown),
  );
}

/** Null if the log cannot be written and the change is one that must not wait for it. */
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
    entry = await accounts().beginChange(context.env, caller.orgId, change);
  } catch (thrown) {
    if (urgent !== true) throw thrown;
    logError("audit log", { org_id: context.var.caller.orgId, request_id: context.var.requestId }, thrown);
    return null;
  }
  if (entry !== null) return entry;
  throw new Refusal({ code: "unauthorized", message: "the organisation was deleted", param: null });
}

async function carryOutAndNote({ env, var: { caller } }: ApiContext, carryOut: () => Promise<void>): Promise<void> {
  try {
    await carryOut();
  } finally {
    await noteSettingsChanged(env, caller.orgId);
  }
}
