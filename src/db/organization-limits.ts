/** What an organisation may use at once, where that differs from the usual. */
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { OrganizationLimits } from "../contract/identity.ts";
import { organizations } from "./schema.ts";

/** Empty for an organisation that is not on record. */
export async function limitsOfOrganization(d1: D1Database, orgId: string): Promise<Partial<OrganizationLimits>> {
  const [row] = await drizzle(d1)
    .select({ limits: organizations.limits })
    .from(organizations)
    .where(eq(organizations.id, orgId))
    .limit(1);
  return row?.limits ?? {};
}
