/**
 * Starts and reads deletions for a caller. The deletion's row in D1 is written in the batch that hides the target; the
 * project's object does the work. If a kill happens in between, the next read of the deletion or the daily
 * reconciliation restarts the work.
 */
import type { DeletionView } from "../contract/deletion.ts";
import { type Caller, permits } from "../contract/identity.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { DeletionRow } from "../kernel/db/schema.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { runObject } from "../kernel/kit/names.ts";
import { minting, readId } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { deleteUnused } from "../kernel/service/delete-unused.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { beginRunDeletion, deletionViewOf, getAnyDeletion, getDeletion } from "./deletion-queries.ts";
import { beginOrganizationDeletion, beginProjectDeletion, nameOfOrganization } from "./owner-queries.ts";
import { projectObject } from "./rpc.ts";

export interface DeleteOptions {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The caller. */
  readonly who: string;
}

/** Refused while an unfinished run rescores this run. A repeat returns the same deletion. */
export async function deleteRun(
  env: Env,
  scope: Scope,
  id: string,
  { now, who }: DeleteOptions,
): Promise<Result<DeletionView>> {
  if (readId(env, id)?.kind !== "run") return notFound("run", id);
  const made = { id: mintId("del", minting(env, now)), requested_by: who, created_at: now };
  let deletion: DeletionRow | null = null;
  const begun = await deleteUnused(env, scope, async () => {
    const { deletion: found, usedBy } = await beginRunDeletion(databaseOf(env), scope, id, made);
    deletion = found;
    return { deleted: found !== null, usedBy };
  });
  if (!begun.ok) return begun;
  if (deletion === null) return notFound("run", id);
  await closeRun(env, scope, id);
  return { ok: true, value: await goOn(env, deletion) };
}

/** Closes the run, so that clients that follow it are notified immediately. */
async function closeRun(env: Env, scope: Scope, id: string): Promise<void> {
  try {
    await runObject(env, scope, id).close();
  } catch (thrown) {
    logError("deletion: the job closes it later", idsOf({ scope, run_id: id }), thrown);
  }
}

type Asker = Pick<Caller, "orgId" | "projectId" | "who">;

/** Deletes a project with everything in it. A key of the project would be deleted with it, and is refused. */
export async function deleteProject(
  env: Env,
  caller: Asker,
  nameOrId: string,
  now: number,
): Promise<Result<DeletionView>> {
  const { orgId, projectId: own, who } = caller;
  // A project that is being deleted has no name, and is found by its id.
  const id = (await accounts().projectId(env, orgId, nameOrId)) ?? nameOrId;
  if (own !== null) return id === own ? tooNarrow("a project") : notFound("project", nameOrId);
  const made = { id: mintId("del", minting(env, now)), requested_by: who, created_at: now };
  const deletion = await beginProjectDeletion(databaseOf(env), orgId, id, made);
  return deletion === null ? notFound("project", nameOrId) : { ok: true, value: await goOn(env, deletion) };
}

/** Deletes the caller's organisation with everything in it, if `confirm` is its name. */
export async function deleteOrganization(
  env: Env,
  { orgId, projectId, who, permissions }: Asker & Pick<Caller, "permissions">,
  confirm: string,
  now: number,
): Promise<Result<DeletionView>> {
  if (projectId !== null) return tooNarrow("an organisation");
  const name = await nameOfOrganization(databaseOf(env), orgId);
  if (name === null) return notFound("organization", orgId);
  if (confirm !== name) return refuse("invalid_request", "confirm: is not the organisation's name", "confirm");
  const byOperator = permits(permissions, "operator");
  const made = { id: mintId("del", minting(env, now)), requested_by: who, created_at: now, byOperator };
  const deletion = await beginOrganizationDeletion(databaseOf(env), orgId, made);
  if (deletion !== null) return { ok: true, value: await goOn(env, deletion) };
  const gone = (await nameOfOrganization(databaseOf(env), orgId)) === null;
  return gone ? notFound("organization", orgId) : ofOperator();
}

function ofOperator(): Result<never> {
  const message = "a key of this organisation has the scope operator and would be deleted: use a key with operator";
  return refuse("conflict", message, null);
}

function tooNarrow(what: string): Result<never> {
  return refuse("forbidden", `deleting ${what} needs a key of the whole organisation`, null);
}

/** Deletions in the caller's reach; for an operator, any. */
export async function readDeletion(
  env: Env,
  { orgId, projectId, permissions }: Pick<Caller, "orgId" | "projectId" | "permissions">,
  id: string,
): Promise<Result<DeletionView>> {
  if (readId(env, id)?.kind !== "deletion") return notFound("deletion", id);
  const any = permits(permissions, "operator");
  const deletion = await (any
    ? getAnyDeletion(databaseOf(env), id)
    : getDeletion(databaseOf(env), { orgId, projectId }, id));
  return deletion === null ? notFound("deletion", id) : { ok: true, value: await goOn(env, deletion) };
}

/** Makes sure that the work on the deletion continues. */
async function goOn(env: Env, deletion: DeletionRow): Promise<DeletionView> {
  const { id, kind, target_id, state, org_id: orgId, project_id: projectId } = deletion;
  const owner = { orgId, projectId };
  if (state !== "done") await projectObject(env, owner).deleteAll(owner, { id, kind, target_id });
  return deletionViewOf(deletion);
}
