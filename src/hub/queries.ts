/**
 * Queries for published environments. Everybody may read what is public, so those that read are not limited to the
 * caller's rows, but to what its project may see.
 */
import { and, asc, eq, exists, gt, isNull, ne, or, type SQL, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { PublishedVersion } from "../contract/published-environment.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { projects } from "../kernel/db/schema.ts";
import { inOrganization, inProject, unscoped } from "../kernel/db/scoped.ts";
import {
  type HubEnvironmentRow,
  type HubGrantRow,
  type HubVersionRow,
  hubEnvironments,
  hubGrants,
  hubOwners,
  hubTags,
  hubVersions,
} from "./tables.ts";
import { LATEST } from "./version-names.ts";

const everybody = (database: Database) => unscoped(database.main, "published environments");

/** What the project may see: its own, those of its organisation, and what is public. Null sees only what is public. */
function isVisible(viewer: Scope | null): SQL | undefined {
  const { visibility, org_id, project_id } = hubEnvironments;
  if (viewer === null) return eq(visibility, "public");
  const { orgId, projectId } = viewer;
  const own = and(eq(org_id, orgId), or(eq(visibility, "organisation"), eq(project_id, projectId)));
  return or(eq(visibility, "public"), own);
}

/** `key`: as names are compared. Null also for one that the project may not see. */
export async function findPublished(
  database: Database,
  viewer: Scope | null,
  key: string,
): Promise<HubEnvironmentRow | null> {
  const rows = await everybody(database)
    .select()
    .from(hubEnvironments)
    .where(and(eq(hubEnvironments.key, key), isVisible(viewer)));
  return rows[0] ?? null;
}

export interface Search {
  /** Words in the name or the description. */
  readonly text: string | null;
  readonly owner: string | null;
  /** Key of the last environment of the previous page. */
  readonly after: string | null;
  readonly limit: number;
}

/** What the project may see, or a stranger if it is null, by name. */
export async function searchPublished(
  database: Database,
  viewer: Scope | null,
  { text, owner, after, limit }: Search,
): Promise<HubEnvironmentRow[]> {
  const { key, name, description } = hubEnvironments;
  const has = (column: typeof name | typeof description) => sql`instr(lower(${column}), ${text?.toLowerCase()}) > 0`;
  return await everybody(database)
    .select()
    .from(hubEnvironments)
    .where(
      and(
        isVisible(viewer),
        owner === null ? undefined : and(gt(key, `${owner}/`), sql`${key} < ${`${owner}0`}`),
        text === null ? undefined : or(has(name), has(description)),
        hasVersion(database),
        after === null ? undefined : gt(key, after),
      ),
    )
    .orderBy(asc(key))
    .limit(limit);
}

/** An environment whose first publication was cut off has none, and is not shown. */
function hasVersion(database: Database): SQL {
  const { id, environment_id } = hubVersions;
  return exists(everybody(database).select({ id }).from(hubVersions).where(eq(environment_id, hubEnvironments.id)));
}

/** Versions of an environment, without what is long. At most `LIMITS.publishedVersions`. */
export async function versionsOf(
  database: Database,
  environmentId: string,
): Promise<Pick<HubVersionRow, "version" | "digest" | "yanked_at" | "taken_down_at" | "created_at">[]> {
  const { version, digest, yanked_at, taken_down_at, created_at } = hubVersions;
  return await everybody(database)
    .select({ version, digest, yanked_at, taken_down_at, created_at })
    .from(hubVersions)
    .where(eq(hubVersions.environment_id, environmentId))
    .limit(LIMITS.publishedVersions);
}

/** What a registry lists of all versions that were not taken down, the oldest first. */
export async function listedVersions(database: Database, environmentId: string): Promise<ListedVersion[]> {
  const { id, version, digest, npm, wheel, description, yanked_at, yank_reason, deprecated, created_at } = hubVersions;
  return await everybody(database)
    .select({ id, version, digest, npm, wheel, description, yanked_at, yank_reason, deprecated, created_at })
    .from(hubVersions)
    .where(and(eq(hubVersions.environment_id, environmentId), isNull(hubVersions.taken_down_at)))
    .orderBy(asc(created_at), asc(id))
    .limit(LIMITS.publishedVersions);
}

export type ListedVersion = Pick<
  HubVersionRow,
  | "id"
  | "version"
  | "digest"
  | "npm"
  | "wheel"
  | "description"
  | "yanked_at"
  | "yank_reason"
  | "deprecated"
  | "created_at"
>;

/** Whole rows, the newest first, after the version `after`. */
export async function pageOfVersions(
  database: Database,
  environmentId: string,
  after: { readonly created_at: number; readonly id: string } | null,
  limit: number,
): Promise<HubVersionRow[]> {
  const { id, created_at, environment_id } = hubVersions;
  const beyond = after === null ? undefined : sql`(${created_at}, ${id}) < (${after.created_at}, ${after.id})`;
  return await everybody(database)
    .select()
    .from(hubVersions)
    .where(and(eq(environment_id, environmentId), beyond))
    .orderBy(sql`${created_at} desc`, sql`${id} desc`)
    .limit(limit);
}

export async function getVersion(
  database: Database,
  environmentId: string,
  version: string,
): Promise<HubVersionRow | null> {
  const { environment_id } = hubVersions;
  const rows = await everybody(database)
    .select()
    .from(hubVersions)
    .where(and(eq(environment_id, environmentId), eq(hubVersions.version, version)));
  return rows[0] ?? null;
}

/** The version that a run has pinned, also if its project may no longer see it. */
export async function getPinned(
  database: Database,
  key: string,
  version: string,
): Promise<{ readonly environment: HubEnvironmentRow; readonly row: HubVersionRow } | null> {
  const rows = await everybody(database)
    .select({ environment: hubEnvironments, row: hubVersions })
    .from(hubVersions)
    .innerJoin(hubEnvironments, eq(hubEnvironments.id, hubVersions.environment_id))
    .where(and(eq(hubEnvironments.key, key), eq(hubVersions.version, version)));
  return rows[0] ?? null;
}

export async function tagsOf(database: Database, environmentId: string): Promise<ReadonlyMap<string, string>> {
  const { tag, version, environment_id } = hubTags;
  const rows = await everybody(database)
    .select({ tag, version })
    .from(hubTags)
    .where(eq(environment_id, environmentId))
    .limit(LIMITS.publishedTags);
  return new Map(rows.map((row) => [row.tag, row.version]));
}

/** The id of the organisation that has this owner name; null if the name is free. */
export async function ownerOf(database: Database, key: string): Promise<string | null> {
  const { org_id } = hubOwners;
  const rows = await everybody(database).select({ org_id }).from(hubOwners).where(eq(hubOwners.key, key));
  return rows[0]?.org_id ?? null;
}

/** The name under which the organisation publishes; null if it has not published yet. */
export async function ownerName(database: Database, orgId: string): Promise<string | null> {
  const rows = await inOrganization(database, orgId).columns({ name: hubOwners.name }, hubOwners);
  return rows[0]?.name ?? null;
}

/** Takes the name for the organisation, unless it or another one has a name by then. */
export async function takeOwner(
  database: Database,
  orgId: string,
  { name, key, now }: { readonly name: string; readonly key: string; readonly now: number },
): Promise<void> {
  await inOrganization(database, orgId).insert(hubOwners, { name, key, created_at: now }).onConflictDoNothing();
}

/** Whether the project exists and its deletion has not begun. */
export async function isOpen(database: Database, { orgId, projectId }: Scope): Promise<boolean> {
  const open = [eq(projects.id, projectId), isNull(projects.deleted_at)];
  return (await inOrganization(database, orgId).columns({ id: projects.id }, projects, ...open)).length > 0;
}

export async function countPublished(database: Database, orgId: string): Promise<number> {
  const rows = await inOrganization(database, orgId).columns({ n: sql<number>`count(*)` }, hubEnvironments);
  return rows[0]?.n ?? 0;
}

/** Adds the environment, unless one of this name exists by then. */
export async function insertEnvironment(
  database: Database,
  orgId: string,
  row: Omit<HubEnvironmentRow, "org_id">,
): Promise<void> {
  await inOrganization(database, orgId).insert(hubEnvironments, row).onConflictDoNothing();
}

/** The organisation's own environment with this name, including one that is private to another project. */
export async function ownEnvironment(
  database: Database,
  orgId: string,
  key: string,
): Promise<HubEnvironmentRow | null> {
  const rows = await inOrganization(database, orgId).select(hubEnvironments, eq(hubEnvironments.key, key));
  return rows[0] ?? null;
}

/** Adds the version and moves the tag to it, and `latest` if it is the newest, all or nothing. False if it exists by then. */
export async function insertVersion(
  database: Database,
  orgId: string,
  row: Omit<
    HubVersionRow,
    "org_id" | "yanked_at" | "yank_reason" | "deprecated" | "taken_down_at" | "take_down_reason"
  >,
  { tag: wanted, isNewest }: { readonly tag: string | null; readonly isNewest: boolean },
): Promise<boolean> {
  const own = inOrganization(database, orgId);
  const { environment_id, project_id, version, created_at, description } = row;
  const tags = new Set([...(isNewest ? [LATEST] : []), ...(wanted === null ? [] : [wanted])]);
  const shown = { ...(isNewest && { description }), updated_at: created_at };
  const moved = [...tags].map((tag) =>
    tagging(database, { id: environment_id, org_id: orgId, project_id }, tag, version, created_at),
  );
  try {
    await own.batch([
      own.insert(hubVersions, row),
      own.update(hubEnvironments, shown, eq(hubEnvironments.id, environment_id)),
      ...moved,
    ]);
    return true;
  } catch (thrown) {
    if (isTaken(thrown)) return false;
    throw thrown;
  }
}

/** D1 says it only in the text of an error. */
function isTaken(thrown: unknown): boolean {
  for (let at: unknown = thrown; at instanceof Error; at = at.cause) {
    if (at.message.includes("UNIQUE constraint failed: hub_versions")) return true;
  }
  return false;
}

export type VersionChanges = Partial<
  Pick<
    HubVersionRow,
    "yanked_at" | "yank_reason" | "deprecated" | "taken_down_at" | "take_down_reason" | "stored_bytes"
  >
>;

export async function updateVersion(
  database: Database,
  orgId: string,
  id: string,
  changes: VersionChanges,
): Promise<void> {
  await inOrganization(database, orgId).update(hubVersions, changes, eq(hubVersions.id, id));
}

/** Sets or removes what versions say instead of them to use, all or nothing. `changes`: by the id of the version. */
export async function deprecateVersions(
  database: Database,
  orgId: string,
  changes: ReadonlyMap<string, string | null>,
): Promise<void> {
  const own = inOrganization(database, orgId);
  const [first, ...others] = [...changes].map(([id, deprecated]) =>
    own.update(hubVersions, { deprecated }, eq(hubVersions.id, id)),
  );
  if (first !== undefined) await own.batch([first, ...others]);
}

type TaggedEnvironment = Pick<HubEnvironmentRow, "id" | "org_id" | "project_id">;

export async function setTag(
  database: Database,
  environment: TaggedEnvironment,
  tag: string,
  version: string,
  now: number,
): Promise<void> {
  await tagging(database, environment, tag, version, now);
}

/** Moves `latest` to this version, and describes the environment as it does. */
export async function moveLatest(
  database: Database,
  environment: TaggedEnvironment,
  { version, description }: Pick<HubVersionRow, "version" | "description">,
  now: number,
): Promise<void> {
  const own = inOrganization(database, environment.org_id);
  const described = { description, updated_at: now };
  await own.batch([
    tagging(database, environment, LATEST, version, now),
    own.update(hubEnvironments, described, eq(hubEnvironments.id, environment.id)),
  ]);
}

function tagging(
  database: Database,
  { id: environment_id, org_id, project_id }: TaggedEnvironment,
  tag: string,
  version: string,
  now: number,
) {
  return inOrganization(database, org_id)
    .insert(hubTags, { project_id, environment_id, tag, version, updated_at: now })
    .onConflictDoUpdate({ target: [hubTags.environment_id, hubTags.tag], set: { version, updated_at: now } });
}

export async function deleteTag(database: Database, orgId: string, environmentId: string, tag: string): Promise<void> {
  await inOrganization(database, orgId).delete(
    hubTags,
    eq(hubTags.environment_id, environmentId),
    eq(hubTags.tag, tag),
  );
}

export async function getGrant(database: Database, scope: Scope, environmentId: string): Promise<HubGrantRow | null> {
  const rows = await inProject(database, scope).select(hubGrants, eq(hubGrants.environment_id, environmentId));
  return rows[0] ?? null;
}

export async function setGrant(
  database: Database,
  scope: Scope,
  grant: Omit<HubGrantRow, "org_id" | "project_id">,
): Promise<void> {
  const { environment_id, ...changes } = grant;
  const project = inProject(database, scope);
  if (grant.needs.length === 0) await project.delete(hubGrants, eq(hubGrants.environment_id, environment_id));
  else {
    const target = [hubGrants.org_id, hubGrants.project_id, hubGrants.environment_id];
    await project.insert(hubGrants, grant).onConflictDoUpdate({ target, set: changes });
  }
}

/** For an organisation that is deleted: what others may not use. */
export async function deletePublished(database: Database, orgId: string): Promise<void> {
  const own = inOrganization(database, orgId);
  const hidden = () =>
    own.columns({ id: hubEnvironments.id }, hubEnvironments, ne(hubEnvironments.visibility, "public"));
  await own.batch([
    own.delete(hubVersions, sql`${hubVersions.environment_id} in ${hidden()}`),
    own.delete(hubTags, sql`${hubTags.environment_id} in ${hidden()}`),
    own.delete(hubEnvironments, ne(hubEnvironments.visibility, "public")),
  ]);
}

export function publishedViewOf(
  { name, visibility, kind }: Pick<HubEnvironmentRow, "name" | "visibility" | "kind">,
  row: HubVersionRow,
  tags: ReadonlyMap<string, string>,
): PublishedVersion {
  const { version, digest, description, about, validation, created_by, created_at } = row;
  const { license, package: file, protocol, provenance } = about;
  const noted = (at: number | null, reason: string | null) =>
    at === null ? null : { reason: reason ?? "", at: seconds(at) };
  return {
    object: "published_version",
    id: `${name}@${version}`,
    ...{ name, version, kind, digest, visibility, description, license },
    tags: [...tags].flatMap(([tag, tagged]) => (tagged === version ? [tag] : [])),
    ...{ package: file, protocol, provenance, validation },
    yanked: noted(row.yanked_at, row.yank_reason),
    deprecated: row.deprecated,
    taken_down: noted(row.taken_down_at, row.take_down_reason),
    created_by,
    created_at: seconds(created_at),
  };
}
