/**
 * What the kernel and the slices ask of accounts: what an organisation may use, who may still do what, and the audit log.
 * The slice that has accounts registers it. Who sends a request is asked in the API (`Authentication` of src/kernel/http/operation.ts).
 */
import type { OrganizationLimits, Permission } from "../../contract/identity.ts";
import type { BillingMode } from "../../contract/money.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Condition, Rows, Statement } from "../db/scoped.ts";
import { type Result, refuse } from "../messages/refusal.ts";

/** What an organisation has, as it was set. Of one that is unknown: the defaults. */
export interface OrganizationSettings {
  readonly limits: OrganizationLimits;
  readonly billing: BillingMode;
  /** Hosts that it may call, `*.example.com` for all below one; null: any. None once its deletion has begun. */
  readonly allowed_hosts: readonly string[] | null;
  /** It is known, and its deletion has not begun. */
  readonly open: boolean;
}

/** A change that is about to be made. */
export interface AuditChange {
  /** Epoch milliseconds. */
  readonly at: number;
  /** `key_…`, `per_…`, or the run whose trainer it is. */
  readonly who: string;
  /** The id of the operation, such as `createKey`. */
  readonly action: string;
  readonly project_id: string | null;
  /** What the path names; null for something that is yet to be made. */
  readonly target: string | null;
  readonly request_id: string;
}

export interface AuditOutcome {
  /** Of the reply. */
  readonly status: number;
  /** What was made; null if nothing was. */
  readonly made: string | null;
  /** What was released of the holds of a run's lost calls: micro-dollars, and for how many calls. */
  readonly released?: { readonly calls: number; readonly micros: number };
}

export interface AccountHooks {
  settingsOf(env: Env, orgId: string): Promise<OrganizationSettings>;
  /** The id of the open project that has this id or name; null: there is none. */
  projectId(env: Env, orgId: string, nameOrId: string): Promise<string | null>;
  /** Whether the organisation has this key or person. */
  hasPayer(env: Env, orgId: string, id: string): Promise<boolean>;
  /**
   * Who may do `needed` in the project now: the person, or the key that replaced the one that is named. Null: they may no
   * longer. `now`: epoch milliseconds.
   */
  whoStillMay(env: Env, scope: Scope, who: string, needed: Permission, now: number): Promise<string | null>;
  /** E-mail addresses of its owners, at most `limit`. */
  ownersOf(env: Env, orgId: string, limit: number): Promise<string[]>;
  /**
   * The statement that revokes the keys of a project at `at`, or (`projectId` null) of the whole organisation, where the condition
   * holds by then: of the batch that closes it.
   */
  revokeKeys(
    database: D1Database,
    owner: { readonly orgId: string; readonly projectId: string | null },
    at: number,
    condition?: Condition,
  ): Statement<unknown>;
  /** Ids of keys with the scope `operator` that work at `now`. */
  operatorKeys(database: D1Database, orgId: string, now: number): Rows<{ readonly id: string }>;
  /** How many of its people are in no other organisation. */
  countOwnPeople(database: D1Database, orgId: string): Promise<number>;
  /** Deletes them, while it is known who its members are. */
  deleteOwnPeople(database: D1Database, orgId: string): Promise<void>;
  /** Enters a change in the audit log. The number of the entry; null once the organisation is gone. */
  beginChange(env: Env, orgId: string, change: AuditChange): Promise<number | null>;
  /** What came of a change. Repeated, the first outcome stays. */
  endChange(env: Env, orgId: string, entry: number, outcome: AuditOutcome): Promise<void>;
}

let registered: AccountHooks | null = null;

/** Once, by the one slice that has accounts. */
export function registerAccounts(hooks: AccountHooks): void {
  registered = hooks;
}

/** There is no default: without limits and allowed hosts anybody could do anything. */
export function accounts(): AccountHooks {
  if (registered === null) throw new Error("this platform has no accounts");
  return registered;
}

/** What is refused once the organisation is being deleted is so for this reason, and not for want of room. */
export async function refuseDeleted(env: Env, orgId: string): Promise<Result<never> | null> {
  const { open } = await accounts().settingsOf(env, orgId);
  return open ? null : refuse("conflict", "the organisation is being deleted", null);
}
