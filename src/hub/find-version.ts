/** Finds the environment that a request names, and the version that it means. */
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { findPublished, getVersion, tagsOf, versionsOf } from "./queries.ts";
import type { HubEnvironmentRow, HubVersionRow } from "./tables.ts";
import { chooseVersion, readNamed } from "./version-names.ts";

export interface NamedEnvironment {
  readonly environment: HubEnvironmentRow;
  /** An exact version, a range or a tag. */
  readonly wanted: string;
}

/** Null if the project, or a stranger if it is null, sees no environment of this name. */
export async function findNamed(env: Env, viewer: Scope | null, named: string): Promise<NamedEnvironment | null> {
  const read = readNamed(named);
  const environment = read && (await findPublished(databaseOf(env), viewer, read.key));
  return read && environment && { environment, wanted: read.wanted };
}

export interface FoundVersion {
  readonly row: HubVersionRow;
  readonly tags: ReadonlyMap<string, string>;
}

/** Null if no version is meant. A version that was taken down is found only by its exact number. */
export async function findVersion(env: Env, { environment, wanted }: NamedEnvironment): Promise<FoundVersion | null> {
  const [versions, tags] = await Promise.all([
    versionsOf(databaseOf(env), environment.id),
    tagsOf(databaseOf(env), environment.id),
  ]);
  const choices = versions
    .filter(({ taken_down_at, version }) => taken_down_at === null || version === wanted)
    .map(({ version, yanked_at }) => ({ version, yanked: yanked_at !== null }));
  const version = chooseVersion(wanted, choices, tags);
  const row = version === null ? null : await getVersion(databaseOf(env), environment.id, version);
  return row && { row, tags };
}
