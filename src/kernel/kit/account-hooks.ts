/**
 * What the kernel and the slices need from accounts: an organisation's limits, whether a caller still has a permission,
 * and the audit log. The accounts slice registers these hooks. Authentication of requests is separate (`Authentication`
 * in src/kernel/http/operation.ts).
 */
import type { OrganizationLimits, Permission } from "../../contract/identity.ts";
import type { BillingMode } from "../../contract/money.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "../db/database.ts";
import type { Condition, Rows, Statement } from "../db/scoped.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import { logError } from "./log.ts";

/** The settings of an organisation. An unknown organisation has the defaults. */
export interface OrganizationSettings {
  readonly limits: OrganizationLimits;
  readonly billing: BillingMode;
  /**
   * Hosts that it may call; `*.example.com` means every host below it. null: any host. Empty once its deletion has
   * begun.
   */
  readonly allowed_hosts: readonly string[] | null;
  /** True if the organisation exists and its deletion has not begun. */
  readonly open: boolean;
}

/** A change that is about to be made. */
export interface AuditChange {
  /** Epoch milliseconds. */
  readonly at: number;
  /** A key (`key_…`), a person (`per_…`), or the run whose trainer made the change. */
  readonly who: string;
  /** The id of the operation, such as `createKey`. */
  readonly action: string;
  readonly project_id: string | null;
  /** What the path names; null if the change creates something. */
  readonly target: string | null;
  readonly request_id: string;
}

export interface AuditOutcome {
  /** HTTP status of the reply. */
  readonly status: number;
  /** Id of what was created; null if nothing was. */
  readonly made: string | null;
  /** Reservations of a run's lost calls that were released: how many calls, and how many micro-dollars. */
  readonly released?: { readonly calls: number; readonly micros: number };
}

export interface AccountHooks {
  settingsOf(env: Env, orgId: string): Promise<OrganizationSettings>;
  /** The id of the open project with this id or name; null if there is none. */
  projectId(env: Env, orgId: string, nameOrId: string): Promise<string | null>;
  /** Whether the organisation has this key or person. */
  hasPayer(env: Env, orgId: string, id: string): Promise<boolean>;
  /**
   * Who has the permission `needed` in the project now: the same person or key, or the key that replaced it. Null if
   * the permission is gone. `now`: epoch milliseconds.
   */
  whoStillMay(env: Env, scope: Scope, who: string, needed: Permission, now: number): Promise<string | null>;
  /** E-mail addresses of the owners, at most `limit`. */
  ownersOf(env: Env, orgId: string, limit: number): Promise<string[]>;
  /**
   * The statement that revokes the keys of a project (or, if `projectId` is null, of the whole organisation) at time
   * `at`. It takes effect only if `condition` holds when it runs. It belongs in the batch that closes the project or
   * organisation.
   */
  revokeKeys(
    database: Database,
    owner: { readonly orgId: string; readonly projectId: string | null },
    at: number,
    condition?: Condition,
  ): Statement<unknown>;
  /** Ids of keys with the scope `operator` that are active at `now`. */
  operatorKeys(database: Database, orgId: string, now: number): Rows<{ readonly id: string }>;
  /** How many people belong to this organisation only. */
  countOwnPeople(database: Database, orgId: string): Promise<number>;
  /** Deletes those people. Must run while the organisation's members are still stored. */
  deleteOwnPeople(database: Database, orgId: string): Promise<void>;
  /** Adds a change to the audit log. Returns the number of the entry; null if the organisation no longer exists. */
  beginChange(env: Env, orgId: string, change: AuditChange): Promise<number | null>;
  /** Records the outcome of a change. If it is recorded twice, the first outcome stays. */
  endChange(env: Env, orgId: string, entry: number, outcome: AuditOutcome): Promise<void>;
  /**
   * The version of the organisation's settings: another one after each change. Null while a change is in progress, and
   * for an organisation that was deleted.
   */
  settingsVersion(env: Env, orgId: string): Promise<string | null>;
  /** For a change of settings that was made without an entry in the organisation's audit log. */
  settingsChanged(env: Env, orgId: string): Promise<void>;
}

let registered: AccountHooks | null = null;

/** Called once, by the slice that has accounts. */
export function registerAccounts(hooks: AccountHooks): void {
  registered = hooks;
}

/** There is no default: without limits and allowed hosts, anyone could do anything. */
export function accounts(): AccountHooks {
  if (registered === null) throw new Error("this platform has no accounts");
  return registered;
}

/** After a change of settings without an entry in the log. If it fails, isolates see the change within five minutes. */
export async function noteSettingsChanged(env: Env, orgId: string): Promise<void> {
  try {
    await accounts().settingsChanged(env, orgId);
  } catch (thrown) {
    logError("a change of settings could not be noted", { org_id: orgId }, thrown);
  }
}

/** Refuses work for an organisation whose deletion has begun, so that the error names the deletion and not a limit. */
export async function refuseDeleted(env: Env, orgId: string): Promise<Result<never> | null> {
  const { open } = await accounts().settingsOf(env, orgId);
  return open ? null : refuse("conflict", "the organisation is being deleted", null);
}
