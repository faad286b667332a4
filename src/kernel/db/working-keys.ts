/** Which keys work. */
import { and, gt, isNull, or, type SQL } from "drizzle-orm";
import { apiKeys } from "./schema.ts";

/** The condition that it is let in at that time. */
export function works(now: number): SQL | undefined {
  return and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now)));
}
