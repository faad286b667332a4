/** Endpoints: where a run's model answers, and its key, sealed. */
import { and, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { Scope } from "../core/scope.ts";
import { type EndpointRow, endpoints } from "./schema.ts";

export async function getEndpoint(
  database: D1Database,
  scope: Scope,
  id: string,
): Promise<EndpointRow | null> {
  const rows = await drizzle(database)
    .select()
    .from(endpoints)
    .where(
      and(
        eq(endpoints.org_id, scope.orgId),
        eq(endpoints.project_id, scope.projectId),
        eq(endpoints.id, id),
      ),
    );
  return rows[0] ?? null;
}
