/**
 * Reads and writes all rows of one D1 database, of every organisation in it, page by page. The database itself lists its
 * tables.
 */
import { type SQL, sql } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { unscoped } from "../kernel/db/scoped.ts";
import { decodeStored, encodeStored } from "../kernel/kit/stored-values.ts";
import type { ObjectKind, ObjectsPage, RowsPage, WrittenRows } from "./wire.ts";

const ROWS_AT_ONCE = 200;
/** Of one page, beyond which it ends with the current row. */
const PAGE_CHARACTERS = 1_000_000;
const OBJECTS_AT_ONCE = 500;
/** Of one statement. */
const MOST_PARAMETERS = 100;
/** Triggers on other tables write to it, so its rows come last. */
const LAST_TABLE = "totals";

type Row = readonly unknown[];

export async function listTables(d1: D1Database): Promise<string[]> {
  const rows = await all(
    d1,
    sql`select name from sqlite_master where type = 'table' and name <> 'd1_migrations'
      and substr(name, 1, 7) <> 'sqlite_' and substr(name, 1, 4) <> '_cf_' order by name = ${LAST_TABLE}, name`,
  );
  return rows.map(([name]) => String(name));
}

export async function hasOrganizations(database: Database): Promise<boolean> {
  const found = await database.each((d1) => all(d1, sql`select 1 from organizations limit 1`));
  return found.some((rows) => rows.length > 0);
}

/** `after`: the number of the last row before the page. */
export async function readRows(d1: D1Database, table: string, after: number): Promise<RowsPage> {
  const columns = (await all(d1, sql`select name from pragma_table_info(${table})`)).map(([name]) => String(name));
  const named = names(columns);
  const rows = await all(
    d1,
    sql`select rowid, ${named} from ${sql.identifier(table)} where rowid > ${after} order by rowid limit ${ROWS_AT_ONCE}`,
  );
  const lines = [JSON.stringify({ columns })];
  let characters = 0;
  let last: number | null = null;
  for (const [rowid, ...row] of rows) {
    const line = JSON.stringify({ row: row.map(encodeStored) });
    lines.push(line);
    characters += line.length;
    last = Number(rowid);
    if (characters >= PAGE_CHARACTERS) break;
  }
  const whole = lines.length - 1 === rows.length && rows.length < ROWS_AT_ONCE;
  return { text: lines.map((line) => `${line}\n`).join(""), next: whole ? null : last };
}

/** Writes a page of rows, which may be written again. The first page of a table replaces all rows that it has. */
export async function writeRows(d1: D1Database, { table, first, text }: WrittenRows): Promise<void> {
  const [head = "{}", ...lines] = text.split("\n").filter((line) => line !== "");
  const { columns } = JSON.parse(head) as { readonly columns: readonly string[] };
  const owned = unscoped(d1, "operator");
  if (first) await owned.run(sql`delete from ${sql.identifier(table)}`);
  const atOnce = Math.max(1, Math.floor(MOST_PARAMETERS / columns.length));
  for (let from = 0; from < lines.length; from += atOnce) {
    const rows = lines.slice(from, from + atOnce).map(valuesOf);
    await owned.run(sql`insert or replace into ${sql.identifier(table)} (${names(columns)}) values ${listed(rows)}`);
  }
}

function valuesOf(line: string): SQL {
  const { row } = JSON.parse(line) as { readonly row: Row };
  return sql`(${listed(row.map((value) => sql`${decodeStored(value)}`))})`;
}

function listed(parts: readonly SQL[]): SQL {
  return sql.join([...parts], sql`, `);
}

/** The objects of a kind, by the rows that name them. `after`: the number of the last row before the page. */
export async function listObjects(d1: D1Database, kind: ListedKind, after: number): Promise<ObjectsPage> {
  const { table, name, trains = sql`0` } = OBJECTS[kind];
  const rows = await all(
    d1,
    sql`select rowid, ${name}, ${trains} from ${table} where rowid > ${after} order by rowid limit ${OBJECTS_AT_ONCE}`,
  );
  const objects = rows.map(([, named, training]) => ({ name: String(named), trains: training === 1 }));
  return { objects, next: rows.length < OBJECTS_AT_ONCE ? null : Number(rows.at(-1)?.[0]) };
}

/** Runs of all organisations that are not being deleted. `after`: the number of the last row before the page. */
export async function listRunPlaces(
  d1: D1Database,
  after: number,
  limit: number,
): Promise<{ readonly at: number; readonly id: string; readonly scope: Scope }[]> {
  const rows = await all(
    d1,
    sql`select rowid, id, org_id, project_id from runs where rowid > ${after} and deleted_at is null
      order by rowid limit ${limit}`,
  );
  return rows.map(([at, id, org, project]) => ({
    ...{ at: Number(at), id: String(id) },
    scope: { orgId: String(org), projectId: String(project) },
  }));
}

export type ListedKind = Exclude<ObjectKind, "trainer" | "shard">;

const IN_ORGANIZATION = sql`'org/' || id`;
const IN_PROJECT = sql`'org/' || org_id || '/' || project_id || '/' || id`;
const ORGANIZATIONS = { table: sql`organizations`, name: IN_ORGANIZATION };

/** As src/kernel/kit/names.ts names them. */
const OBJECTS: Readonly<Record<ListedKind, { readonly table: SQL; readonly name: SQL; readonly trains?: SQL }>> = {
  account: ORGANIZATIONS,
  audit: ORGANIZATIONS,
  organization: ORGANIZATIONS,
  project: { table: sql`projects`, name: sql`'org/' || org_id || '/' || id` },
  fleet: { table: sql`fleets`, name: IN_PROJECT },
  webhook: { table: sql`webhook_endpoints`, name: IN_PROJECT },
  trigger: { table: sql`triggers`, name: IN_PROJECT },
  run: { table: sql`runs`, name: IN_PROJECT, trains: sql`kind = 'training'` },
};

function names(columns: readonly string[]): SQL {
  return listed(columns.map((column) => sql`${sql.identifier(column)}`));
}

async function all(d1: D1Database, query: SQL): Promise<Row[]> {
  return await unscoped(d1, "operator").values<unknown[]>(query);
}
