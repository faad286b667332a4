/** The changes that were made in the organisation. */
import type { AuditEntry, AuditList } from "../accounts/wire.ts";
import type { AuditLogQuery, CallOptions } from "./options.ts";
import type { PagePromise } from "./requests.ts";
import { Resource } from "./resource.ts";

export class AuditLog extends Resource {
  /** Newest first. */
  list(query: AuditLogQuery = {}, options: CallOptions = {}): PagePromise<AuditEntry, AuditList> {
    return this.requests.list("/audit-log", query, options);
  }
}
