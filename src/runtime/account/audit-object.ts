/**
 * Who changed what in an organisation, one object for each.
 *
 * Invariants. An entry is written before the change begins and never changes, but that its outcome is written once: an
 * entry without one was cut off, and what it did nobody can say from here. Beyond `LIMITS.auditEntries` the oldest go, and
 * it is counted how many. Nothing is written by a question.
 */
import { DurableObject } from "cloudflare:workers";
import { LIMITS } from "../../contract/limits.ts";
import type { AuditChange, AuditOutcome, AuditPage, AuditQuery, StoredAuditEntry } from "../contract/account-wire.ts";
import type { AuditRpc, Serves } from "../contract/rpc.ts";

const TABLE = `create table if not exists entries (
  id integer primary key autoincrement, at integer not null, who text not null, action text not null,
  project_id text, target text, request_id text not null, status integer)`;

export class AuditObject extends DurableObject<Env> implements Serves<AuditRpc> {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#storage = state.storage;
    this.#sql = state.storage.sql;
  }

  /** The number of the entry. */
  begin({ at, who, action, project_id, target, request_id }: AuditChange): number {
    return this.#storage.transactionSync(() => {
      this.#sql.exec(TABLE);
      const values = [at, who, action, project_id, target, request_id];
      const [made] = this.#sql
        .exec<{ id: number }>(
          "insert into entries (at, who, action, project_id, target, request_id) values (?, ?, ?, ?, ?, ?) returning id",
          ...values,
        )
        .toArray();
      if (made === undefined) throw new Error("the entry was not written");
      this.#sql.exec("delete from entries where id <= ?", made.id - LIMITS.auditEntries);
      return made.id;
    });
  }

  /** What came of the change. The first outcome stays. */
  end(id: number, { status, target }: AuditOutcome): void {
    this.#sql.exec(
      "update entries set status = ?, target = coalesce(target, ?) where id = ? and status is null",
      status,
      target,
      id,
    );
  }

  /** Newest first, at most `limit` that came before the entry `before`. */
  list({ before, limit, who, action, target, project_id = null }: AuditQuery): AuditPage {
    if (this.#isNew()) return { entries: [], dropped: 0 };
    const entries = this.#sql
      .exec<StoredAuditEntry>(
        `select id, at, who, action, project_id, target, request_id, status from entries
          where id < ?1 and (?2 is null or who = ?2) and (?3 is null or action = ?3) and (?4 is null or target = ?4)
            and (?5 is null or project_id = ?5)
          order by id desc limit ?6`,
        ...[before ?? Number.MAX_SAFE_INTEGER, who, action, target, project_id, limit],
      )
      .toArray();
    const [oldest] = this.#sql.exec<{ id: number | null }>("select min(id) as id from entries").toArray();
    return { entries, dropped: (oldest?.id ?? 1) - 1 };
  }

  /** Nothing of the organisation is kept. */
  async forget(): Promise<void> {
    await this.#storage.deleteAll();
  }

  #isNew(): boolean {
    return this.#sql.exec("select 1 from sqlite_master where name = 'entries'").toArray().length === 0;
  }
}
