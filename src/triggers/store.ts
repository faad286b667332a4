/**
 * The storage of a trigger's object: the log of deliveries, including those whose run is still to be started; ids, to
 * recognise repeats; and a sample of unsigned deliveries.
 *
 * Invariants. A delivery and its ids are written together, and so is its outcome. Everything is bounded by `LIMITS`.
 * Unsigned deliveries have their own table and push out nothing else. A repeat of a delivery that started no run adds
 * no second entry. Ids of such deliveries are in the table `passed`: they are many, and must not push out ids that
 * identify runs.
 */
import { LIMITS } from "../contract/limits.ts";
import type { Refusal } from "../kernel/messages/refusal.ts";
import type { Filling } from "./mapping.ts";
import type { LoggedDelivery } from "./rpc.ts";
import type { DeliveryState } from "./wire.ts";

const TABLES = `
create table if not exists deliveries (
  serial integer primary key, delivery_id text not null, event text, state text not null, run_id text, error text,
  superseded_by integer, at integer not null, goes_on integer not null default 0,
  filling text, origin text, tries integer not null default 0, try_at integer, accepted_at integer);
create index if not exists deliveries_pending on deliveries (state, serial) where state in ('accepted', 'waiting');
create index if not exists deliveries_going on deliveries (serial) where goes_on = 1;
create table if not exists ids (id text primary key, serial integer not null, at integer not null, run_id text);
create index if not exists ids_by_serial on ids (serial);
create index if not exists ids_by_time on ids (at);
create table if not exists passed (id text primary key, serial integer not null);
create table if not exists unsigned (
  serial integer primary key, error text not null, more integer not null, at integer not null)`;

const SERIAL = "serial";
const DROPPED_AT_ONCE = 100;
/** How many deliveries may come between two prunings of the log. */
const DROPPED_EVERY = 50;

/** A delivery whose run is still to be started. */
export interface Pending {
  readonly serial: number;
  readonly delivery_id: string;
  readonly filling: Filling;
  readonly origin: string;
  readonly tries: number;
  /** When the alarm takes it up; 0 for a waiting delivery. */
  readonly try_at: number;
  readonly at: number;
  /** When its turn came; null if it never waited. */
  readonly accepted_at: number | null;
}

export interface NewDelivery {
  readonly ids: readonly [string, ...string[]];
  readonly event: string | null;
  readonly state: DeliveryState;
  readonly error: Refusal | null;
  readonly filling: Filling | null;
  readonly origin: string | null;
  /** When the alarm takes up an accepted delivery. */
  readonly try_at: number | null;
}

type PendingRow = Omit<Pending, "filling"> & { readonly filling: string };
type Row = {
  readonly serial: number;
  readonly delivery_id: string | null;
  readonly event: string | null;
  readonly state: DeliveryState;
  readonly run_id: string | null;
  readonly error: string | null;
  readonly superseded_by: number | null;
  readonly more: number;
  readonly at: number;
};

const SHOWN = "serial, delivery_id, event, state, run_id, error, superseded_by, 0 as more, at";

export class DeliveryStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  #made: boolean;
  /** An older object may lack a table. */
  #whole: boolean;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    const tables = storage.sql.exec("select name from sqlite_master where name in ('deliveries', 'passed')").toArray();
    this.#made = tables.length > 0;
    this.#whole = tables.length === 2;
  }

  /** No delivery was ever stored. */
  get isNew(): boolean {
    return !this.#made;
  }

  /** Call it when the storage is freed. */
  forget(): void {
    this.#made = false;
    this.#whole = false;
  }

  /** All or nothing. */
  write<T>(work: () => T): T {
    return this.#storage.transactionSync(() => {
      if (!this.#whole) this.#sql.exec(TABLES);
      const result = work();
      this.#made = true;
      this.#whole = true;
      return result;
    });
  }

  /** The delivery with one of these ids. `run_id` is known even if its entry has left the log. */
  known(ids: readonly string[]): { readonly serial: number; readonly run_id: string | null } | null {
    if (this.isNew) return null;
    for (const id of ids) {
      const found = this.#all<{ serial: number; run_id: string | null }>(
        "select serial, run_id from ids where id = ?",
        id,
      );
      if (found[0] !== undefined) return found[0];
    }
    return null;
  }

  /** The latest entry of a delivery with one of these ids that started no run. */
  passed(ids: readonly string[]): LoggedDelivery | null {
    if (!this.#whole) return null;
    for (const id of ids) {
      const [found] = this.#all<{ serial: number }>("select serial from passed where id = ?", id);
      const entry = found === undefined ? null : this.find(found.serial);
      if (entry !== null) return entry;
    }
    return null;
  }

  /** Call within `write`. `known`: whether a repeat must be recognised as the same run. */
  add({ ids, event, state, error, filling, origin, try_at }: NewDelivery, known: boolean, now: number): number {
    const serial = this.#next();
    const [id] = ids;
    this.#sql.exec(
      `insert into deliveries (serial, delivery_id, event, state, error, at, filling, origin, try_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[serial, id, event, state, jsonOf(error), now, jsonOf(filling), origin, try_at],
    );
    if (!known) this.#pass(serial, ids);
    else for (const one of ids) this.#sql.exec("insert or ignore into ids values (?, ?, ?, null)", one, serial, now);
    this.#drop(serial, now);
    return serial;
  }

  /** Call within `write`. */
  addUnsigned(error: Refusal, more: number, now: number): void {
    const serial = this.#next();
    this.#sql.exec("insert into unsigned values (?, ?, ?, ?)", serial, JSON.stringify(error), more, now);
    this.#sql.exec(
      "delete from unsigned where serial not in (select serial from unsigned order by serial desc limit ?)",
      LIMITS.unsignedLogged,
    );
  }

  find(serial: number): LoggedDelivery | null {
    const rows = this.#all<Row>(`select ${SHOWN} from deliveries where serial = ?`, serial);
    return rows[0] === undefined ? null : logged(rows[0]);
  }

  /** Newest first. */
  page(before: number | null, limit: number): LoggedDelivery[] {
    if (this.isNew) return [];
    const from = before ?? Number.MAX_SAFE_INTEGER;
    const rows = this.#all<Row>(
      `select ${SHOWN} from deliveries where serial < ? union all
        select serial, null, null, 'refused', null, error, null, more, at from unsigned where serial < ?
        order by serial desc limit ?`,
      ...[from, from, limit],
    );
    return rows.map(logged);
  }

  /** In the order of arrival. */
  pending(state: "accepted" | "waiting", limit: number): Pending[] {
    return this.#pending("state = ? order by serial limit ?", state, limit);
  }

  pendingOne(serial: number): Pending | null {
    return this.#pending("state = 'accepted' and serial = ?", serial)[0] ?? null;
  }

  count(state: "accepted" | "waiting"): number {
    return this.#all<{ n: number }>("select count(*) as n from deliveries where state = ?", state)[0]?.n ?? 0;
  }

  /** When the alarm must take up the next accepted delivery. */
  nextTry(): number | null {
    return (
      this.#all<{ at: number | null }>("select min(try_at) as at from deliveries where state = 'accepted'")[0]?.at ??
      null
    );
  }

  /** The latest run that the trigger started and that is not known to have ended. */
  going(): string | null {
    const rows = this.#all<{ run_id: string }>(
      "select run_id from deliveries where goes_on = 1 order by serial desc limit 1",
    );
    return rows[0]?.run_id ?? null;
  }

  noteEnded(): void {
    this.#sql.exec("update deliveries set goes_on = 0 where goes_on = 1");
  }

  /** The turn of a waiting delivery has come. */
  accept(serial: number, try_at: number, now: number): void {
    const query = "update deliveries set state = 'accepted', try_at = ?, accepted_at = ? where serial = ?";
    this.#sql.exec(query, try_at, now, serial);
  }

  /** Replaces all other waiting deliveries. Call within `write`. */
  supersede(by: number): void {
    this.#sql.exec(
      "update deliveries set state = 'superseded', superseded_by = ?, filling = null where state = 'waiting' and serial <> ?",
      ...[by, by],
    );
  }

  started(serial: number, runId: string): void {
    this.write(() => {
      this.#sql.exec(
        "update deliveries set state = 'started', run_id = ?, goes_on = 1, filling = null where serial = ?",
        ...[runId, serial],
      );
      this.#sql.exec("update ids set run_id = ? where serial = ?", runId, serial);
    });
  }

  /** The delivery started no run: a repeat is evaluated again. */
  refused(serial: number, error: Refusal): void {
    this.write(() => {
      this.#sql.exec(
        "update deliveries set state = 'refused', error = ?, filling = null where serial = ?",
        ...[JSON.stringify(error), serial],
      );
      const ids = this.#all<{ id: string }>("delete from ids where serial = ? returning id", serial);
      this.#pass(
        serial,
        ids.map(({ id }) => id),
      );
    });
  }

  /** Records that a delivery started no run. Replaces an earlier entry with the same outcome. */
  #pass(serial: number, ids: readonly string[]): void {
    const [before, entry] = [this.passed(ids), this.find(serial)];
    if (before !== null && before.state === entry?.state && before.error?.code === entry.error?.code) {
      this.#sql.exec("delete from deliveries where serial = ?", before.serial);
    }
    for (const id of ids) this.#sql.exec("insert or replace into passed values (?, ?)", id, serial);
  }

  postpone(serial: number, try_at: number): void {
    this.#sql.exec("update deliveries set tries = tries + 1, try_at = ? where serial = ?", try_at, serial);
  }

  #pending(condition: string, ...values: (string | number)[]): Pending[] {
    if (this.isNew) return [];
    const rows = this.#all<PendingRow>(
      `select serial, delivery_id, filling, origin, tries, coalesce(try_at, 0) as try_at, at, accepted_at
        from deliveries where ${condition}`,
      ...values,
    );
    return rows.map((row) => ({ ...row, filling: JSON.parse(row.filling) as Filling }));
  }

  #next(): number {
    const serial = (this.#storage.kv.get<number>(SERIAL) ?? 0) + 1;
    this.#storage.kv.put(SERIAL, serial);
    return serial;
  }

  #drop(newest: number, now: number): void {
    this.#sql.exec("delete from ids where rowid <= (select max(rowid) from ids) - ?", LIMITS.deliveryIds);
    this.#sql.exec(
      "delete from ids where id in (select id from ids where at < ? order by at limit ?)",
      ...[now - LIMITS.deliveryIdMs, DROPPED_AT_ONCE],
    );
    if (newest % DROPPED_EVERY !== 0) return;
    // The entry of the unfinished run stays, since waiting deliveries depend on it.
    this.#sql.exec(
      `delete from deliveries where state not in ('accepted', 'waiting')
        and serial is not (select max(serial) from deliveries where goes_on = 1)
        and serial not in (select serial from deliveries order by serial desc limit ?)`,
      LIMITS.deliveriesLogged,
    );
    this.#sql.exec("delete from passed where serial not in (select serial from deliveries)");
  }

  #all<T extends Record<string, SqlStorageValue>>(query: string, ...values: SqlStorageValue[]): T[] {
    return this.isNew ? [] : this.#sql.exec<T>(query, ...values).toArray();
  }
}

function jsonOf(value: Refusal | Filling | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function logged({ error, ...row }: Row): LoggedDelivery {
  return { ...row, error: error === null ? null : (JSON.parse(error) as Refusal) };
}
