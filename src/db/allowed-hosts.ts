/** Which hosts an organisation's endpoints and environments may call. */
import { organizations } from "./schema.ts";
import { inOrganization } from "./scoped.ts";

/** Hosts, `*.example.com` for all below it; null: any. None for an organisation whose deletion has begun. */
export async function readAllowedHosts(database: D1Database, orgId: string): Promise<readonly string[] | null> {
  const columns = { hosts: organizations.allowed_hosts, deleted_at: organizations.deleted_at };
  const [row] = await inOrganization(database, orgId).columns(columns, organizations);
  if (row === undefined) return null;
  return row.deleted_at === null ? row.hosts : [];
}
