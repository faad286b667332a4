/**
 * Organisations: created by the bootstrap or by an operator, with a first project and a first key in the same batch.
 */
import { and, eq, isNull, notExists, type SQL, sql } from "drizzle-orm";
import { DEFAULT_LIMITS, type OrganizationLimits } from "../../contract/identity.ts";
import type { Database } from "../../kernel/db/database.ts";
import { violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { deletions, type OrganizationRow, organizations, type ProjectRow, projects } from "../../kernel/db/schema.ts";
import { type InOrganization, inOrganization, type Statement, unscoped } from "../../kernel/db/scoped.ts";
import type { OrganizationSettings } from "../../kernel/kit/account-hooks.ts";
import { type ApiKeyRow, apiKeys } from "../tables.ts";
import type { ListedOrganization, OrganizationView } from "../wire.ts";

/** The rows of a new organisation. */
export interface Founding {
  readonly organization: OrganizationRow;
  readonly project: Omit<ProjectRow, "org_id">;
  readonly key: Omit<ApiKeyRow, "org_id">;
}

/** The organisation, unless it is being deleted. */
export async function findOrganization(database: Database, orgId: string): Promise<OrganizationRow | null> {
  const rows = await inOrganization(database, orgId).select(organizations, isNull(organizations.deleted_at));
  return rows[0] ?? null;
}

/** The settings, also of an organisation that is being deleted. */
export async function readSettings(database: Database, orgId: string): Promise<OrganizationSettings> {
  const { limits, billing, allowed_hosts, deleted_at } = organizations;
  const columns = { limits, billing, allowed_hosts, deleted_at };
  const [row] = database.has(orgId) ? await inOrganization(database, orgId).columns(columns, organizations) : [];
  if (row === undefined) return { limits: DEFAULT_LIMITS, billing: "off", allowed_hosts: null, open: false };
  const open = row.deleted_at === null;
  return { limits: limitsOf(row), billing: row.billing, allowed_hosts: open ? row.allowed_hosts : [], open };
}

/** Changes only the given fields, also within `limits`. Null if the organisation no longer exists. */
export async function updateOrganization(
  database: Database,
  orgId: string,
  {
    limits,
    ...changes
  }: Partial<Pick<OrganizationRow, "name" | "allowed_hosts" | "limits" | "billing" | "credit_limit_micros">>,
): Promise<OrganizationRow | null> {
  if (!database.has(orgId)) return null;
  const rows = await inOrganization(database, orgId)
    .update(
      organizations,
      // An update must set at least one column.
      { id: orgId, ...changes, ...(limits && { limits: merged(organizations.limits, limits) }) },
      isNull(organizations.deleted_at),
    )
    .returning();
  return rows[0] ?? null;
}

/** Sets members of a stored JSON object one by one, so that of two concurrent changes none is lost. Null is a value. */
export function merged(column: SQL | typeof organizations.limits | typeof projects.retention, changes: object): SQL {
  const pairs = Object.entries(changes).filter(([, value]) => value !== undefined);
  const members = pairs.map(([name, value]) => sql`, ${`$.${name}`}, json(${JSON.stringify(value)})`);
  return sql`json_set(${column}${sql.join(members)})`;
}

/** All organisations of the deployment except those being deleted, ordered by creation time: for an operator. */
export async function listOrganizations(database: Database, page: Page): Promise<OrganizationRow[]> {
  const there = isNull(organizations.deleted_at);
  const found = await database.each((d1) => {
    const all = unscoped(d1, "operator").select().from(organizations).$dynamic();
    return pageOf(organizations, page, (beyond) => all.where(and(there, beyond)));
  });
  const direction = page.order === "asc" ? 1 : -1;
  return found
    .flat()
    .sort((one, other) => direction * (one.created_at - other.created_at || (one.id < other.id ? -1 : 1)))
    .slice(0, page.limit);
}

/** Creates all of it or nothing. False: an organisation with this id exists, or was deleted. */
export async function insertOrganization(database: Database, founding: Founding): Promise<boolean> {
  const { organization } = founding;
  const owned = inOrganization(database, organization.id);
  const receipt = owned.select(deletions, eq(deletions.kind, "organization"), eq(deletions.target_id, organization.id));
  try {
    const [made] = await owned.batch([
      owned.insertIf(notExists(receipt), organizations, organization).returning(),
      ...withFirst(owned, founding),
    ]);
    return made.length > 0;
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return false;
  }
}

/**
 * The number of the D1 database for a new organisation: that with the fewest organisations, the first of several. So one
 * that was added gets all new organisations until it has as many as the others.
 */
export async function numberForOrganization(database: Database): Promise<number> {
  if (database.all.length === 1) return 0;
  const counts = await database.each((d1) => unscoped(d1, "operator").$count(organizations));
  return counts.indexOf(Math.min(...counts));
}

/**
 * Creates the first organisation of a deployment. Returns false and creates nothing if there ever was an organisation.
 */
export async function insertFirstOrganization(database: Database, founding: Founding): Promise<boolean> {
  const all = unscoped(database.main, "bootstrap");
  const none = notExists(all.select().from(organizations));
  // The receipt of a deleted organisation stays.
  const noneGone = notExists(all.select().from(deletions).where(eq(deletions.kind, "organization")));
  const owned = inOrganization(database, founding.organization.id);
  const [made] = await owned.batch([
    owned.insertIf(sql`${none} and ${noneGone}`, organizations, founding.organization).returning(),
    ...withFirst(owned, founding),
  ]);
  return made.length > 0;
}

/** The organisation whose bootstrap key has this hash; null if there is none. */
export async function findFoundedWith(database: Database, hash: string): Promise<string | null> {
  const bootstraps = and(eq(apiKeys.hash, hash), eq(apiKeys.created_by, "bootstrap"));
  const [row] = await unscoped(database.main, "bootstrap")
    .select({ id: apiKeys.org_id })
    .from(apiKeys)
    .where(bootstraps);
  return row?.id ?? null;
}

/** The project and the key, if the preceding statement created the organisation. */
function withFirst(owned: InOrganization, { project, key }: Founding): Statement<unknown>[] {
  const there = sql`exists ${owned.select(organizations)}`;
  return [owned.insertIf(there, projects, project), owned.insertIf(there, apiKeys, key)];
}

/** Any organisation of the deployment, also one that is being deleted: for an operator's list. */
export async function findAnyOrganization(database: Database, id: string): Promise<OrganizationRow | null> {
  if (!database.has(id)) return null;
  const rows = await unscoped(database.of(id), "operator").select().from(organizations).where(eq(organizations.id, id));
  return rows[0] ?? null;
}

export function limitsOf({ limits }: Pick<OrganizationRow, "limits">): OrganizationLimits {
  return { ...DEFAULT_LIMITS, ...limits };
}

export function organizationViewOf(row: OrganizationRow): OrganizationView {
  return { ...listedOrganizationOf(row), allowed_hosts: row.allowed_hosts === null ? null : [...row.allowed_hosts] };
}

export function listedOrganizationOf(row: OrganizationRow): ListedOrganization {
  return {
    object: "organization",
    id: row.id,
    name: row.name,
    limits: limitsOf(row),
    billing: row.billing,
    credit_limit_micros: row.credit_limit_micros,
    created_at: seconds(row.created_at),
  };
}
