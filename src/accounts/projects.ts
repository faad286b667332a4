/** Creates and changes projects. */

import type { Caller } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization } from "../contract/scope.ts";
import { mintId } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { refuseDeleted } from "../kernel/kit/account-hooks.ts";
import { given } from "../kernel/kit/given.ts";
import { type CreateOptions, replay, toRemember } from "../kernel/kit/idempotency.ts";
import { minting } from "../kernel/kit/secrets.ts";
import { notifyOfProject } from "../kernel/kit/slice-hooks.ts";
import { type Result, refuse, refuseOneProject } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { findProject, insertProject, projectViewOf, updateProject } from "./queries/projects.ts";
import type { ProjectPatch, ProjectRequest, ProjectView } from "./wire.ts";

const OPERATION = "createProject";

export async function createProject(
  env: Env,
  caller: Caller,
  { name, retention }: ProjectRequest,
  options: CreateOptions,
): Promise<Result<{ value: ProjectView; replayed: boolean }>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const before = await findRepeated(env, caller, options);
  if (before !== null) return before;
  const id = mintId("pj", minting(env, options.now));
  const project = {
    id,
    org_id: caller.orgId,
    name,
    retention: given(retention),
    created_at: options.now,
    deleted_at: null,
  };
  const outcome = await insertProject(databaseOf(env), caller.orgId, project, toRemember(OPERATION, id, options));
  if (outcome === "taken") return (await findRepeated(env, caller, options)) ?? nameTaken(name);
  if (outcome === "full") {
    const going = await refuseDeleted(env, caller.orgId);
    if (going !== null) return going;
    return refuse(
      "conflict",
      `the organisation already has ${LIMITS.projects} projects, the maximum: delete some first`,
      null,
    );
  }
  return { ok: true, value: { value: projectViewOf(project), replayed: false } };
}

/** Changes only the given fields, also within `retention`. */
export async function changeProject(
  env: Env,
  caller: Caller,
  nameOrId: string,
  patch: ProjectPatch,
): Promise<Result<ProjectView>> {
  const before = await findProject(databaseOf(env), caller, nameOrId);
  if (before === null) return notFound("project", nameOrId);
  const after = await updateProject(databaseOf(env), caller.orgId, before.id, {
    ...(patch.name !== undefined && { name: patch.name }),
    ...(patch.retention && { retention: given(patch.retention) }),
  });
  if (after === null) return notFound("project", nameOrId);
  if (after === "taken") return nameTaken(patch.name ?? before.name);
  const scope = { orgId: caller.orgId, projectId: after.id };
  if (patch.retention) await notifyOfProject(env, scope);
  return { ok: true, value: projectViewOf(after) };
}

function nameTaken(name: string): Result<never> {
  return refuse("conflict", `a project called ${name} already exists`, "name");
}

async function findRepeated(env: Env, caller: Caller, options: CreateOptions) {
  const scope = ofOrganization(caller.orgId);
  const found = await replay(env, scope, OPERATION, options, (id) => findProject(databaseOf(env), caller, id));
  if (found === null || !found.ok) return found;
  return { ok: true, value: { value: projectViewOf(found.value), replayed: true } } as const;
}
