/**
 * How much an organisation may use at once. Each isolate reads its limits, stored bytes and billing mode once a minute,
 * so a change takes effect everywhere within that time. Unfinished runs are counted exactly, by the statement that adds
 * one.
 */
import type { OrganizationLimits } from "../../contract/identity.ts";
import { databaseOf } from "../db/database.ts";
import { storedBy } from "../db/stored-bytes.ts";
import { accounts, type OrganizationSettings } from "../kit/account-hooks.ts";
import { LruCache } from "../kit/caches.ts";
import { type Result, refuse } from "../messages/refusal.ts";

const KEPT_MS = 60_000;
const ORGANIZATIONS_KEPT = 1000;

export interface OrganizationStanding extends OrganizationSettings {
  /** Bytes of its datasets and of its runs' results, as far as the list of runs has them. */
  readonly stored: number;
}

const known = new LruCache<OrganizationStanding & { readonly until: number }>(ORGANIZATIONS_KEPT);
/** Uploads in progress in this isolate, by organisation. */
const uploading = new Map<string, number>();

export async function limitsOf(env: Env, orgId: string, now: number): Promise<OrganizationStanding> {
  const kept = known.get(orgId);
  if (kept !== undefined && kept.until > now) return kept;
  const [settings, stored] = await Promise.all([accounts().settingsOf(env, orgId), storedBy(databaseOf(env), orgId)]);
  const standing = { ...settings, stored };
  known.set(orgId, { ...standing, until: now + KEPT_MS });
  return standing;
}

/** Null while the organisation may store more. */
export function refusedStorage({ limits, stored }: OrganizationStanding): Result<never> | null {
  const { storage_bytes: most } = limits;
  if (most === null || stored < most) return null;
  const message = `storage_bytes: the organisation stores ${stored} bytes and its limit is ${most}: delete runs or datasets`;
  return refuse("rate_limited", message, null);
}

export function tooManyRuns({ runs_in_flight: most }: OrganizationLimits): Result<never> {
  const message = `runs_in_flight: the organisation already has ${most} runs in flight, the maximum: try again when one has ended`;
  return refuse("rate_limited", message, null);
}

/** Runs an upload, if the organisation may have one more in this isolate and may store more. */
export async function withinUploads<T>(
  env: Env,
  orgId: string,
  now: number,
  upload: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const standing = await limitsOf(env, orgId, now);
  const refused = refusedStorage(standing);
  if (refused !== null) return refused;
  const { uploads_at_once: most } = standing.limits;
  const others = uploading.get(orgId) ?? 0;
  if (most !== null && others >= most) {
    const message = `uploads_at_once: the organisation has ${others} uploads in progress, and its limit is ${most}: try again later`;
    return refuse("rate_limited", message, null);
  }
  uploading.set(orgId, others + 1);
  try {
    return await upload();
  } finally {
    const left = (uploading.get(orgId) ?? 1) - 1;
    if (left === 0) uploading.delete(orgId);
    else uploading.set(orgId, left);
  }
}
