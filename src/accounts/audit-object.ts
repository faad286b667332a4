/**
 * Records who changed what in an organisation. One object per organisation.
 *
 * Invariants. An entry is written before the change starts. Only its outcome is added later, once. An entry without an
 * outcome was interrupted: it is unknown what it changed. The entry of a refused change is deleted, since nothing
 * changed. If there are more than `LIMITS.auditEntries` entries, the oldest are deleted, and `dropped` counts them.
 * Reading writes nothing. Because it has every change, it also has the version of the organisation's settings
 * (settings-version.ts).
 */

import { LIMITS } from "../contract/limits.ts";
import type { AuditChange, AuditOutcome } from "../kernel/kit/account-hooks.ts";
import { type Migration, migrate } from "../kernel/kit/migrate.ts";
import { StoredObject } from "../kernel/kit/stored-object.ts";
import { Tombstone } from "../kernel/kit/tombstone.ts";
import type { Serves } from "../kernel/messages/rpc.ts";
import type { AuditPage, AuditQuery, AuditRpc, StoredAuditEntry } from "./rpc.ts";
import { changesSettings, type OpenChange, type OpenChanges, SettingsVersion } from "./settings-version.ts";

/** Each has an index. */
const FILTERS = ["who", "action", "target", "project_id"] as const;

const TABLES = `create table if not exists entries (
  id integer primary key autoincrement, at integer not null, who text not null, action text not null,
  project_id text, target text, made text, request_id text not null, status integer);
create index if not exists entries_by_who on entries (who, id);
create index if not exists entries_by_action on entries (action, id);
create index if not exists entries_by_target on entries (target, id);
create index if not exists entries_by_project on entries (project_id, id)`;

const MIGRATIONS: readonly Migration[] = [
  // JSON: the amount released from the reservations for a run's lost calls.
  { name: "released", statements: ["alter table entries add column released text"] },
];

/** The clocks of two machines may differ by this much. */
const CLOCKS_MS = 60_000;
/** A new instance reads at most so many entries to find the changes in progress. It answers nothing else meanwhile. */
const MOST_READ = 100_000;

/** After a failure, a statement that D1 has received may still be carried out. */
function mayGoOn(status: number): boolean {
  return status >= 500;
}

export class AuditObject extends StoredObject implements Serves<AuditRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #tombstone: Tombstone;
  readonly #settings: SettingsVersion;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#storage = state.storage;
    this.#sql = state.storage.sql;
    this.#tombstone = new Tombstone(state.storage);
    this.#settings = new SettingsVersion((since) => this.#openChanges(since));
    if (!this.#isNew()) migrate(this.#storage, MIGRATIONS);
  }

  /** The number of the entry; null if the organisation was deleted. */
  begin(change: AuditChange): number | null {
    if (this.#tombstone.stands) return null;
    if (!changesSettings(change.action)) return this.#write(change);
    return this.#settings.begin(this.now(), () => this.#write(change));
  }

  #write({ at, who, action, project_id, target, request_id }: AuditChange): number {
    return this.#storage.transactionSync(() => {
      if (this.#isNew()) {
        this.#sql.exec(TABLES);
        migrate(this.#storage, MIGRATIONS);
      }
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

  /** Stores the outcome of the change. Only the first outcome is kept, and only the first `released`. */
  end(id: number, { status, made, released }: AuditOutcome): void {
    if (!mayGoOn(status)) this.#settings.end(id, this.now());
    if (this.#isNew()) return;
    const refused = status >= 400 && status < 500;
    if (refused) this.#sql.exec("delete from entries where id = ? and status is null", id);
    else this.#sql.exec("update entries set status = ?, made = ? where id = ? and status is null", status, made, id);
    if (released === undefined) return;
    const text = JSON.stringify(released);
    this.#sql.exec("update entries set released = ? where id = ? and released is null", text, id);
  }

  /** Newest first, at most `limit` entries before the entry `before`. */
  list(asked: AuditQuery): AuditPage {
    if (this.#isNew()) return { entries: [], dropped: 0 };
    const given = FILTERS.filter((column) => asked[column] !== null);
    const conditions = ["id < ?", ...given.map((column) => `${column} = ?`)].join(" and ");
    const { before, limit } = asked;
    const values = [before ?? Number.MAX_SAFE_INTEGER, ...given.map((column) => asked[column]), limit];
    const entries = this.#sql
      .exec<StoredAuditEntry>(
        `select id, at, who, action, project_id, target, made, request_id, status, released from entries
          where ${conditions} order by id desc limit ?`,
        ...values,
      )
      .toArray();
    const [oldest] = this.#sql.exec<{ id: number | null }>("select min(id) as id from entries").toArray();
    return { entries, dropped: (oldest?.id ?? 1) - 1 };
  }

  /** Reads which changes of settings began after `since` and have not ended. The isolates that made them set `at`. */
  #openChanges(since: number): OpenChanges {
    if (this.#isNew()) return { changes: [], all: true };
    const changes: OpenChange[] = [];
    const entries = this.#sql.exec<{ id: number; at: number; action: string; status: number | null }>(
      "select id, at, action, status from entries order by id desc limit ?",
      MOST_READ,
    );
    let read = 0;
    for (const { id, at, action, status } of entries) {
      if (at < since - CLOCKS_MS) return { changes, all: true };
      read += 1;
      if ((status === null || mayGoOn(status)) && changesSettings(action)) changes.push({ entry: id, at });
    }
    return { changes, all: read < MOST_READ };
  }

  settingsVersion(): string | null {
    return this.#tombstone.stands ? null : this.#settings.current(this.now());
  }

  settingsChanged(): void {
    this.#settings.changed();
  }

  /** Deletes all entries of the organisation. */
  async forget(): Promise<void> {
    await this.#tombstone.set(this.now());
  }

  override async alarm(): Promise<void> {
    await this.#tombstone.decay(this.now());
  }

  #isNew(): boolean {
    return this.#sql.exec("select 1 from sqlite_master where name = 'entries'").toArray().length === 0;
  }
}
