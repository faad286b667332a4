/** Creates a resource of a project once for an Idempotency-Key. */
import type { Scope } from "../../contract/scope.ts";
import { type CreateOptions, type Creation, createOnce, type Made } from "../kit/idempotency.ts";
import type { Result } from "../messages/refusal.ts";
import { noteProject } from "./note-project.ts";

/** Returns the row with the columns that name its project, as it is stored. */
export async function createInProject<Row extends { readonly id: string }, Why extends string>(
  env: Env,
  scope: Scope,
  options: CreateOptions,
  creation: Creation<Row, Why>,
): Promise<Result<Made<Row & { readonly org_id: string; readonly project_id: string }>>> {
  const made = await createOnce(env, scope, options, creation);
  if (!made.ok) return made;
  const { value, replayed } = made.value;
  // The key expires one day, so the project needs a daily cleanup.
  if (!replayed && options.idempotencyKey !== null) await noteProject(env, scope, options.now);
  return { ok: true, value: { value: { ...value, org_id: scope.orgId, project_id: scope.projectId }, replayed } };
}
