/** Python environments as pip and uv read them. `viewer`: null for a stranger. */
import { LIMITS } from "../contract/limits.ts";
import { nameKeyOf } from "../contract/published-environment.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { filesOf } from "./files.ts";
import { type PythonProject, type PythonProjects, projectOf, projectsOf } from "./python-format.ts";
import { parseWheelName, versionOfPython } from "./python-names.ts";
import { findPublished, getVersion, listedVersions, searchPublished } from "./queries.ts";
import type { HubEnvironmentRow } from "./tables.ts";

export async function listProjects(env: Env, viewer: Scope | null, owner: string): Promise<Result<PythonProjects>> {
  const all = { text: null, owner: nameKeyOf(owner), after: null, limit: LIMITS.publishedEnvironments };
  const rows = await searchPublished(databaseOf(env), viewer, all);
  const names = rows.filter(({ kind }) => kind === "python").map(({ name }) => name.split("/")[1] ?? name);
  if (names.length === 0) return refuse("not_found", `no Python environments of ${owner}`, null);
  return { ok: true, value: projectsOf(names) };
}

export async function readProject(
  env: Env,
  viewer: Scope | null,
  owner: string,
  name: string,
): Promise<Result<PythonProject>> {
  const environment = await find(env, viewer, owner, name);
  if (environment === null) return refuse("not_found", `no Python environment ${owner}/${name}`, null);
  return { ok: true, value: projectOf(name, await listedVersions(databaseOf(env), environment.id)) };
}

/** A wheel, or with `.metadata` after its name, its METADATA. */
export async function readFile(
  env: Env,
  viewer: Scope | null,
  owner: string,
  file: string,
): Promise<Result<R2ObjectBody>> {
  const missing = refuse("not_found", `no file ${file} of ${owner}`, null);
  const wheel = file.replace(/\.metadata$/, "");
  const named = parseWheelName(wheel);
  const version = named === null ? null : versionOfPython(named.version);
  const environment = named === null ? null : await find(env, viewer, owner, named.name);
  if (environment === null || version === null) return missing;
  const row = await getVersion(databaseOf(env), environment.id, version);
  if (row?.wheel?.file !== wheel) return missing;
  if (row.taken_down_at !== null) {
    return refuse("not_found", `${environment.name}@${version} was taken down: ${row.take_down_reason}`, null);
  }
  const keys = filesOf(environment, row.id);
  const object = await env.STORE.get(wheel === file ? keys.package : keys.metadata);
  return object === null ? missing : { ok: true, value: object };
}

async function find(env: Env, viewer: Scope | null, owner: string, name: string): Promise<HubEnvironmentRow | null> {
  const environment = await findPublished(databaseOf(env), viewer, nameKeyOf(`${owner}/${name}`));
  return environment?.kind === "python" ? environment : null;
}
