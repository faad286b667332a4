/** The interfaces of the objects that count requests and that keep the audit log. */
import type { AuditChange, AuditOutcome } from "../kernel/kit/account-hooks.ts";

export interface RequestsAsk {
  /** Requests a minute. */
  readonly limit: number;
  /** The number of requests asked for. */
  readonly want: number;
  /** Requests of earlier blocks that were not used. */
  readonly unused: number;
}

export interface RequestsLease {
  readonly granted: number;
  /** What else could be granted now. */
  readonly remaining: number;
  /** Milliseconds until one more request may be granted; 0 if it may be granted now. */
  readonly retryMs: number;
  /** Milliseconds until the bucket is full again. */
  readonly resetMs: number;
}

export interface AuditQuery {
  readonly before: number | null;
  readonly limit: number;
  /** Null: any. */
  readonly who: string | null;
  readonly action: string | null;
  readonly target: string | null;
  readonly project_id: string | null;
}

// A type and not an interface: SQLite rows must be records with string keys.
export type StoredAuditEntry = {
  readonly id: number;
  readonly at: number;
  readonly who: string;
  readonly action: string;
  readonly project_id: string | null;
  readonly target: string | null;
  readonly made: string | null;
  readonly request_id: string;
  /** The status of the reply; null while the change is in progress, and for good if the platform stopped during it. */
  readonly status: number | null;
  /** JSON. */
  readonly released: string | null;
};

export interface AuditPage {
  readonly entries: StoredAuditEntry[];
  /** The number of older entries that were deleted. */
  readonly dropped: number;
}

/** Counts the requests of one key, or of an organisation. The rule is in request-budget.ts. */
export interface RequestsRpc {
  take(asked: RequestsAsk): Promise<RequestsLease>;
}

/** Changes made in an organisation. */
export interface AuditRpc {
  begin(change: AuditChange): Promise<number | null>;
  end(id: number, outcome: AuditOutcome): Promise<void>;
  list(query: AuditQuery): Promise<AuditPage>;
  /** Null while a change of settings is in progress, and after the organisation was deleted. */
  settingsVersion(): Promise<string | null>;
  /** The settings were changed without an entry. */
  settingsChanged(): Promise<void>;
  forget(): Promise<void>;
}

/** The counter for a key, or for a whole organisation (null). */
export function requestsObject(env: Env, orgId: string, keyId: string | null): RequestsRpc {
  const stub: unknown = env.REQUESTS.getByName(keyId === null ? `org/${orgId}` : `org/${orgId}/${keyId}`);
  return stub as RequestsRpc;
}

/** The audit log of an organisation. */
export function auditObject(env: Env, orgId: string): AuditRpc {
  const stub: unknown = env.AUDIT.getByName(`org/${orgId}`);
  return stub as AuditRpc;
}
