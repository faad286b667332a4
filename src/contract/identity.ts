/** Organisations, their projects, people and keys: the caller of a request, and its permissions. */
import * as z from "zod";

/**
 * What a caller may do; on the wire a key's `scopes`. `x:write` includes `x:read`, and `runs:write` more (`INCLUDES`).
 * `admin` includes everything within the key's reach, except the permissions of the deployment: `operator` makes
 * organisations and sets their limits, and sees none of their data; `metrics`, which it includes, reads counts.
 * `trainer` is for the trainer of a training run, `engine` for a weights server that reports versions.
 */
export const PERMISSIONS = [
  "runs:read",
  "runs:write",
  "rollouts:read",
  "rollouts:write",
  "environments:read",
  "environments:write",
  "datasets:read",
  "datasets:write",
  "endpoints:read",
  "endpoints:write",
  "secrets:read",
  "secrets:write",
  "webhooks:read",
  "webhooks:write",
  "triggers:read",
  "triggers:write",
  "trainer",
  "engine",
  "billing:read",
  "billing:write",
  "audit:read",
  "admin",
  "operator",
  "metrics",
] as const;
export const Permission = z.enum(PERMISSIONS);
export type Permission = z.infer<typeof Permission>;

/**
 * Permissions that include others. A caller that starts runs names their endpoint, and so can read everything that a
 * run is given: rows of datasets, and rollouts that it forks or scores again. It also gets the token of the run's
 * trainer.
 */
const INCLUDES: Readonly<Partial<Record<Permission, readonly Permission[]>>> = {
  "runs:write": ["runs:read", "rollouts:read", "datasets:read", "trainer"],
  "rollouts:write": ["rollouts:read"],
  "environments:write": ["environments:read"],
  "datasets:write": ["datasets:read"],
  "endpoints:write": ["endpoints:read"],
  "secrets:write": ["secrets:read"],
  "webhooks:write": ["webhooks:read"],
  "triggers:write": ["triggers:read"],
  "billing:write": ["billing:read"],
  operator: ["metrics"],
};
/** The permissions that `admin` does not include. */
const OF_DEPLOYMENT: readonly Permission[] = ["operator", "metrics"];

/** Whether a caller with the permissions `held` may do what needs `needed`. */
export function permits(held: readonly Permission[], needed: Permission): boolean {
  if (held.includes(needed) || held.some((one) => INCLUDES[one]?.includes(needed))) return true;
  return held.includes("admin") && !OF_DEPLOYMENT.includes(needed);
}

/** From the role with the most permissions to the one with the fewest. */
export const ROLES = ["owner", "developer", "viewer"] as const;
export const Role = z.enum(ROLES);
export type Role = z.infer<typeof Role>;

const READS = PERMISSIONS.filter((one) => one.endsWith(":read"));
/** Only owners change budgets. */
const WRITES = PERMISSIONS.filter((one) => one.endsWith(":write") && one !== "billing:write");

/** The permissions of an organisation's members, in each of its projects. */
export const PERMISSIONS_OF: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ["admin"],
  developer: [...READS.filter((one) => one !== "audit:read"), ...WRITES, "trainer"],
  viewer: READS.filter((one) => one !== "audit:read" && one !== "secrets:read"),
};

const Limit = z.int().min(0).max(1_000_000_000_000_000);

/** Limits of an organisation. Null: no limit. */
export const OrganizationLimits = z.strictObject({
  requests_per_minute: Limit.nullable(),
  runs_in_flight: Limit.nullable(),
  concurrent_rollouts: Limit.nullable(),
  storage_bytes: Limit.nullable(),
  uploads_at_once: Limit.nullable(),
});
export type OrganizationLimits = z.infer<typeof OrganizationLimits>;

export const DEFAULT_LIMITS: OrganizationLimits = {
  requests_per_minute: 6000,
  runs_in_flight: 1000,
  concurrent_rollouts: 10_000,
  storage_bytes: 1024 ** 4,
  uploads_at_once: 10,
};

const Days = z.int().min(1).max(36_500);

/** For how many days a project keeps its results; null: until they are deleted. */
export const Retention = z.strictObject({
  runs_days: Days.nullable(),
  datasets_days: Days.nullable(),
  verdicts_days: Days.nullable(),
  idempotency_keys_days: Days,
});
export type Retention = z.infer<typeof Retention>;

export const DEFAULT_RETENTION: Retention = {
  runs_days: null,
  datasets_days: null,
  verdicts_days: 90,
  idempotency_keys_days: 2,
};

/** The caller of a request. */
export interface Caller {
  readonly orgId: string;
  /** The only project it may access; null: any project of the organisation. */
  readonly projectId: string | null;
  readonly permissions: readonly Permission[];
  /** For the audit log: `key_…`, `per_…`, or the run that the trainer's token is for. */
  readonly who: string;
  /** The only run that a trainer's token may access; null for every other caller. */
  readonly runId: string | null;
  /** Epoch milliseconds; null: never. */
  readonly expiresAt: number | null;
  /**
   * The browser session of the request, and when it ends (epoch milliseconds); absent if the request has the key
   * itself.
   */
  readonly session?: { readonly id: string; readonly expiresAt: number };
  /** Requests per minute: the key's own limit, and the organisation's. Null: no limit. */
  readonly perMinute: { readonly own: number | null; readonly organization: number | null };
}

/** The roles that have all of these permissions. */
export function rolesWith(scopes: readonly Permission[]): Role[] {
  return ROLES.filter((role) => scopes.every((one) => permits(PERMISSIONS_OF[role], one)));
}

/** The permissions that are in both lists: a person's key never may do more than the person. */
export function inBoth(one: readonly Permission[], other: readonly Permission[]): Permission[] {
  return PERMISSIONS.filter((permission) => permits(one, permission) && permits(other, permission));
}

/** The name of an organisation's first project, which is used if a request names none. */
export const DEFAULT_PROJECT = "default";
