/** What isolates ask of the objects that count requests and that keep the audit log, and what they are told. */
import type { AuditChange, AuditOutcome } from "../kernel/kit/account-hooks.ts";

export interface RequestsAsk {
  /** Requests a minute. */
  readonly limit: number;
  /** How many are asked for. */
  readonly want: number;
  /** Of the blocks before: requests that were not made. */
  readonly unused: number;
}

export interface RequestsGrant {
  readonly granted: number;
  /** What is left to be granted now. */
  readonly remaining: number;
  /** Milliseconds until one more may be granted; 0 if it may be now. */
  readonly retryMs: number;
  /** Milliseconds until the whole limit is there again. */
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

// A type and not an interface: SQLite's rows are records by name.
export type StoredAuditEntry = {
  readonly id: number;
  readonly at: number;
  readonly who: string;
  readonly action: string;
  readonly project_id: string | null;
  readonly target: string | null;
  readonly made: string | null;
  readonly request_id: string;
  /** Of the reply; null while the change is under way, and for good where the platform stopped in the middle. */
  readonly status: number | null;
  /** JSON. */
  readonly released: string | null;
};

export interface AuditPage {
  readonly entries: StoredAuditEntry[];
  /** Older entries that are kept no longer. */
  readonly dropped: number;
}

/** Requests of one key, or of an organisation: kept in step with request-budget.ts, which is the rule. */
export interface RequestsRpc {
  take(asked: RequestsAsk): Promise<RequestsGrant>;
}

/** Changes made in an organisation. */
export interface AuditRpc {
  begin(change: AuditChange): Promise<number | null>;
  end(id: number, outcome: AuditOutcome): Promise<void>;
  list(query: AuditQuery): Promise<AuditPage>;
  forget(): Promise<void>;
}

/** Who counts the requests of a key, or of all of an organisation (null). */
export function requestsObject(env: Env, orgId: string, keyId: string | null): RequestsRpc {
  const stub: unknown = env.REQUESTS.getByName(keyId === null ? `org/${orgId}` : `org/${orgId}/${keyId}`);
  return stub as RequestsRpc;
}

/** Who changed what in an organisation. */
export function auditObject(env: Env, orgId: string): AuditRpc {
  const stub: unknown = env.AUDIT.getByName(`org/${orgId}`);
  return stub as AuditRpc;
}
