/** The tables of an organisation's ledger. They are created with the first write. */
import { type MigratedStorage, type Migration, migrate } from "../../kernel/kit/migrate.ts";
import type { Rows } from "../../kernel/kit/rows.ts";

/** The part of an object's storage that the ledger needs. */
export type LedgerStorage = MigratedStorage;

/**
 * `entries`: the newest journal entries. `archive`: the files with older entries, kept for ever. `cursors`: for each
 * run, the number of its last charged end and of its last charged batch. `sources`: everything else that is posted
 * once, kept for ever; `number` is null if it cost nothing. `months`: kept for ever. A row of `holds` is deleted when
 * the reservation ends, a row of `spent` after its month, a row of `notices` after its month if it was delivered, and a
 * row of `usage` after its hour if it was copied.
 */
export const LEDGER_MIGRATIONS: readonly Migration[] = [
  {
    name: "0001_books",
    statements: [
      `create table entries (number integer primary key, kind text not null, source_id text not null,
        period text not null, at integer not null, project_id text, run_id text, payer text, price_version text,
        lines text not null, note text)`,
      "create unique index entries_by_source on entries (source_id, kind, period)",
      "create index entries_by_run on entries (run_id, number) where run_id is not null",
      "create index entries_by_kind on entries (kind, number) where kind <> 'rollout'",
      `create table sources (source_id text not null, kind text not null, period text not null, number integer,
        primary key (source_id, kind, period)) without rowid`,
      "create index sources_by_kind on sources (kind, number)",
      "create table accounts (name text primary key, micros integer not null) without rowid",
      `create table cursors (run_id text not null, stream text not null, n integer not null, first_entry integer,
        last_entry integer, primary key (run_id, stream)) without rowid`,
      `create table holds (run_id text primary key, project_id text not null, payer text not null,
        asked integer not null, least integer not null, micros integer not null, until integer not null,
        told_at integer) without rowid`,
      `create table spent (month text not null, name text not null, micros integer not null,
        primary key (month, name)) without rowid`,
      `create table months (month text primary key, first_entry integer not null, last_entry integer not null,
        last_at integer not null, opening_micros integer not null, closing_micros integer not null,
        accounts text not null, sha256 text, closed_at integer) without rowid`,
      `create table usage (hour integer not null, project_id text not null, payer text not null,
        environment text not null, model text not null, kind text not null, counts text not null, lines text not null,
        version integer not null, copied integer not null, since integer not null,
        primary key (hour, project_id, payer, environment, model, kind)) without rowid`,
      "create index usage_to_copy on usage (since) where version > copied",
      `create table copies (first_entry integer primary key, last_entry integer not null, month text not null,
        sha256 text not null, stored integer not null default 0)`,
      `create table notices (month text not null, budget_id text not null, percent integer not null,
        about text not null, at integer not null, tries integer not null default 0, delivered_at integer,
        primary key (month, budget_id, percent)) without rowid`,
      "create table facts (name text primary key, value text not null) without rowid",
    ],
  },
  {
    // Earlier releases moved the entries of a closed month to files. The archive starts with the files of the months
    // that have a `sha256`, even if their entries were not deleted yet.
    name: "0002_archive",
    statements: [
      "create table archive (first_entry integer primary key, last_entry integer not null, month text not null)",
      `insert into archive select first_entry, last_entry, month from copies
        where last_entry <= (select max(last_entry) from months where sha256 is not null)`,
      "delete from entries where number <= (select max(last_entry) from archive)",
      `insert into facts select 'archived', json_group_object(name, micros) from (
        select changed.key as name, sum(changed.value) as micros from months, json_each(months.accounts) as changed
        where months.sha256 is not null group by changed.key)`,
      "delete from facts where name = 'told'",
      "drop table copies",
      "alter table months drop column sha256",
    ],
  },
];

/** True if the tables exist. */
export function areKept(rows: Rows): boolean {
  return rows.one("select 1 from sqlite_master where name = 'entries' and type = 'table'") !== null;
}

export function makeLedger(storage: LedgerStorage): void {
  migrate(storage, LEDGER_MIGRATIONS);
}

/** The month in UTC, such as `2026-11`. `at`: epoch milliseconds. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7);
}

/** The end of a month such as `2026-11`, which is the start of the next month, in epoch milliseconds. */
export function endOfMonth(month: string): number {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return Date.UTC(year, number, 1);
}
