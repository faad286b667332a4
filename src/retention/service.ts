/**
 * Deletions as a caller asks for them. The row in D1 that says so hides what is deleted in the same batch; the object of
 * the project does the work. A kill between the two is mended by whoever asks for the deletion next, and by the sweep.
 */
import type { DeletionView } from "../contract/deletion.ts";
import { type Caller, permits } from "../contract/identity.ts";
import type { Scope } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
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
  /** Who asks for it. */
  readonly who: string;
}

/** Refused while an unfinished run scores what this one left. Asked again, it gives the same deletion. */
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
    const { deletion: found, usedBy } = await beginRunDeletion(env.DB, scope, id, made);
    deletion = found;
    return { deleted: found !== null, usedBy };
  });
  if (!begun.ok) return begun;
  if (deletion === null) return notFound("run", id);
  await closeRun(env, scope, id);
  return { ok: true, value: await goOn(env, deletion) };
}

/** So that whoever follows it learns at once that it is gone. */
async function closeRun(env: Env, scope: Scope, id: string): Promise<void> {
  try {
    await runObject(env, scope, id).close();
  } catch (thrown) {
    logError("deletion: the job closes it later", idsOf({ scope, run_id: id }), thrown);
  }
}

type Asker = Pick<Caller, "orgId" | "projectId" | "who">;

/** A project with all that is in it. Only a key of the whole organisation may: one of the project would end with it. */
export async function deleteProject(
  env: Env,
  caller: Asker,
  nameOrId: string,
  now: number,
): Promise<Result<DeletionView>> {
  const { orgId, projectId: own, who } = caller;
  // One whose deletion has begun has no name any more, and is known by its id.
  const id = (await accounts().projectId(env, orgId, nameOrId)) ?? nameOrId;
  if (own !== null) return id === own ? tooNarrow("a project") : notFound("project", nameOrId);
  const made = { id: mintId("del", minting(env, now)), requested_by: who, created_at: now };
  const deletion = await beginProjectDeletion(env.DB, orgId, id, made);
  return deletion === null ? notFound("project", nameOrId) : { ok: true, value: await goOn(env, deletion) };
}

/** The caller's organisation with all that is in it, under its name. */
export async function deleteOrganization(
  env: Env,
  { orgId, projectId, who, permissions }: Asker & Pick<Caller, "permissions">,
  confirm: string,
  now: number,
): Promise<Result<DeletionView>> {
  if (projectId !== null) return tooNarrow("an organisation");
  const name = await nameOfOrganization(env.DB, orgId);
  if (name === null) return notFound("organization", orgId);
  if (confirm !== name) return refuse("invalid_request", "confirm: is not the organisation's name", "confirm");
  const byOperator = permits(permissions, "operator");
  const made = { id: mintId("del", minting(env, now)), requested_by: who, created_at: now, byOperator };
  const deletion = await beginOrganizationDeletion(env.DB, orgId, made);
  if (deletion !== null) return { ok: true, value: await goOn(env, deletion) };
  const gone = (await nameOfOrganization(env.DB, orgId)) === null;
  return gone ? notFound("organization", orgId) : ofOperator();
}

function ofOperator(): Result<never> {
  const message = "a key of this organisation has the scope operator and would be deleted: use a key with operator";
  return refuse("conflict", message, null);
}

function tooNarrow(what: string): Result<never> {
  return refuse("forbidden", `deleting ${what} needs a key of the whole organisation`, null);
}

/** Those of the caller's reach, and to an operator anybody's. */
export async function readDeletion(
  env: Env,
  { orgId, projectId, permissions }: Pick<Caller, "orgId" | "projectId" | "permissions">,
  id: string,
): Promise<Result<DeletionView>> {
  if (readId(env, id)?.kind !== "deletion") return notFound("deletion", id);
  const any = permits(permissions, "operator");
  const deletion = await (any ? getAnyDeletion(env.DB, id) : getDeletion(env.DB, { orgId, projectId }, id));
  return deletion === null ? notFound("deletion", id) : { ok: true, value: await goOn(env, deletion) };
}

/** Sees to it that somebody works on it. */
async function goOn(env: Env, deletion: DeletionRow): Promise<DeletionView> {
  const { id, kind, target_id, state, org_id: orgId, project_id: projectId } = deletion;
  const owner = { orgId, projectId };
  if (state !== "done") await projectObject(env, owner).deleteAll(owner, { id, kind, target_id });
  return deletionViewOf(deletion);
}
