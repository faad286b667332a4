/** Projects of an organisation. A project that is being deleted has no name and is not found. */
import { and, count, eq, exists, isNotNull, isNull, or, type SQL, sql } from "drizzle-orm";
import { DEFAULT_RETENTION } from "../../contract/identity.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Database } from "../../kernel/db/database.ts";
import { type Remembered, rememberIf, violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { organizations, type ProjectRow, projects } from "../../kernel/db/schema.ts";
import { inOrganization } from "../../kernel/db/scoped.ts";
import type { ProjectView } from "../wire.ts";
import { merged } from "./organizations.ts";

export type NamedProject = ProjectRow & { readonly name: string };

/** What a caller may access: a whole organisation, or one project of it. */
export interface Reach {
  readonly orgId: string;
  /** Null: all projects of the organisation. */
  readonly projectId: string | null;
}

/** By id or name. */
export async function findProject(
  database: Database,
  { orgId, projectId }: Reach,
  nameOrId: string,
): Promise<NamedProject | null> {
  const meant = or(eq(projects.id, nameOrId), eq(projects.name, nameOrId));
  const rows = await inOrganization(database, orgId).select(projects, meant, ...reached(projectId));
  return rows.find(isNamed) ?? null;
}

/** Ordered by creation time, then id; at most `page.limit`. */
export async function listProjects(
  database: Database,
  { orgId, projectId }: Reach,
  page: Page,
): Promise<NamedProject[]> {
  const owned = inOrganization(database, orgId);
  const rows = await pageOf(projects, page, (beyond) => owned.select(projects, beyond, ...reached(projectId)));
  return rows.filter(isNamed);
}

/** `full`: the organisation has the maximum number of projects. */
export async function insertProject(
  database: Database,
  orgId: string,
  project: Omit<ProjectRow, "org_id">,
  made: Remembered | null,
): Promise<"inserted" | "taken" | "full"> {
  const owned = inOrganization(database, orgId);
  const there = owned.columns({ count: count() }, projects, isNotNull(projects.name));
  const open = exists(owned.select(organizations, isNull(organizations.deleted_at)));
  const room = and(open, sql`${there} < ${LIMITS.projects}`) ?? open;
  const inserted = exists(owned.select(projects, eq(projects.id, project.id)));
  try {
    const [rows] = await owned.batch([
      owned.insertIf(room, projects, project).returning(),
      ...rememberIf(database, orgId, inserted, made),
    ]);
    return rows.length > 0 ? "inserted" : "full";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

/** Changes only the given fields, also within `retention`. Null if the project no longer exists. */
export async function updateProject(
  database: Database,
  orgId: string,
  id: string,
  { name, retention }: Partial<Pick<NamedProject, "name" | "retention">>,
): Promise<NamedProject | "taken" | null> {
  // An update must set at least one column.
  const changes = { id, ...(name && { name }), ...(retention && { retention: merged(projects.retention, retention) }) };
  try {
    const rows = await inOrganization(database, orgId)
      .update(projects, changes, eq(projects.id, id), isNotNull(projects.name))
      .returning();
    return rows.find(isNamed) ?? null;
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

function reached(projectId: string | null): SQL[] {
  return [isNotNull(projects.name), ...(projectId === null ? [] : [eq(projects.id, projectId)])];
}

function isNamed(row: ProjectRow): row is NamedProject {
  return row.name !== null;
}

export function projectViewOf({ id, name, retention, created_at }: NamedProject): ProjectView {
  const kept = { ...DEFAULT_RETENTION, ...retention };
  return { object: "project", id, name, retention: kept, created_at: seconds(created_at) };
}
