/** Organisations, their projects, people and keys: who asks, and what they may. */
import * as z from "zod";

/**
 * What a caller may do; on the wire a key's `scopes`. `x:write` includes `x:read`, and `runs:write` more (`INCLUDES`). `admin` includes everything inside the
 * key's reach but what is about the deployment: `operator` makes organisations and sets their limits, and sees
 * nothing of theirs; `metrics`, which it includes, reads counts. `trainer` is what a training run's trainer does, `engine` what a server of weights reports.
 */
export const PERMISSIONS = [
  "runs:read",
  "runs:write",
  "rollouts:read",
  "rollouts:write",
  "environments:read",
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
 * What includes other permissions. Whoever starts runs names their endpoint, and with that reads whatever a run is given:
 * rows of datasets, and rollouts that it forks or scores again; and is shown the token of its trainer.
 */
const INCLUDES: Readonly<Partial<Record<Permission, readonly Permission[]>>> = {
  "runs:write": ["runs:read", "rollouts:read", "datasets:read", "trainer"],
  "rollouts:write": ["rollouts:read"],
  "datasets:write": ["datasets:read"],
  "endpoints:write": ["endpoints:read"],
  "secrets:write": ["secrets:read"],
  "webhooks:write": ["webhooks:read"],
  "triggers:write": ["triggers:read"],
  "billing:write": ["billing:read"],
  operator: ["metrics"],
};
/** What `admin` does not include. */
const OF_DEPLOYMENT: readonly Permission[] = ["operator", "metrics"];

/** True if whoever has `held` may do what `needed` names. */
export function permits(held: readonly Permission[], needed: Permission): boolean {
  if (held.includes(needed) || held.some((one) => INCLUDES[one]?.includes(needed))) return true;
  return held.includes("admin") && !OF_DEPLOYMENT.includes(needed);
}

/** From the one that may most to the one that may least. */
export const ROLES = ["owner", "developer", "viewer"] as const;
export const Role = z.enum(ROLES);
export type Role = z.infer<typeof Role>;

const READS = PERMISSIONS.filter((one) => one.endsWith(":read"));
/** Budgets are the owners'. */
const WRITES = PERMISSIONS.filter((one) => one.endsWith(":write") && one !== "billing:write");

/** What members of an organisation may, in each of its projects. */
export const PERMISSIONS_OF: Readonly<Record<Role, readonly Permission[]>> = {
  owner: ["admin"],
  developer: [...READS.filter((one) => one !== "audit:read"), ...WRITES, "trainer"],
  viewer: READS.filter((one) => one !== "audit:read" && one !== "secrets:read"),
};

const Limit = z.int().min(0).max(1_000_000_000_000_000);

/** What an organisation may use at once. Null: no limit. */
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

/** How many days a project keeps what it made; null: until it is deleted. */
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

/** Who is behind a request. */
export interface Caller {
  readonly orgId: string;
  /** The one project it may touch; null: any of the organisation. */
  readonly projectId: string | null;
  readonly permissions: readonly Permission[];
  /** For the audit log: `key_…`, `per_…`, or the run whose trainer it is. */
  readonly who: string;
  /** The one run a trainer's token is for; null for anybody else. */
  readonly runId: string | null;
  /** Epoch milliseconds; null: never. */
  readonly expiresAt: number | null;
  /** The browser's session that it comes by, and when that ends (epoch milliseconds); absent: it shows the key itself. */
  readonly session?: { readonly id: string; readonly expiresAt: number };
  /** Limits on requests a minute: its own, and what its organisation has for all. Null: none. */
  readonly perMinute: { readonly own: number | null; readonly organization: number | null };
}

/** The roles that may do all of these. */
export function rolesWith(scopes: readonly Permission[]): Role[] {
  return ROLES.filter((role) => scopes.every((one) => permits(PERMISSIONS_OF[role], one)));
}

/** What may be done by who is allowed both: a person's key never does more than the person. */
export function inBoth(one: readonly Permission[], other: readonly Permission[]): Permission[] {
  return PERMISSIONS.filter((permission) => permits(one, permission) && permits(other, permission));
}

/** The name of the project that an organisation begins with, and of the one that is meant where none is named. */
export const DEFAULT_PROJECT = "default";
