/**
 * The only way to D1. A caller names the owner of the rows once, and gets statements that always have the owner's
 * condition. It is added here, to each table that a statement reads or changes, and the owner's columns are written
 * here.
 *
 * A condition may compare columns and contain another statement of this module (`exists(…)`). A condition that names a
 * table directly throws, because nothing would limit it to the owner. The lookups that give a request its scope, and
 * the work of operators, have no owner: `unscoped` makes them, by name, and test/ground/scope.test.ts lists them all.
 */
import {
  and,
  eq,
  exists,
  getTableColumns,
  getTableName,
  is,
  isNull,
  SQL,
  type SQLWrapper,
  sql,
  Table,
} from "drizzle-orm";
import type { BatchItem, BatchResponse } from "drizzle-orm/batch";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import type { RunnableQuery } from "drizzle-orm/runnable-query";
import type {
  AnySQLiteColumn,
  IndexColumn,
  SelectedFieldsFlat,
  SQLiteTable,
  SQLiteUpdateSetSource,
} from "drizzle-orm/sqlite-core";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { organizations, projects } from "./schema.ts";

/** A column, by the type of its values. */
export type Column<Data> = AnySQLiteColumn<{ data: NonNullable<Data>; notNull: null extends Data ? boolean : true }>;
/** A table of a project. In some, such as keys and deletions, a row belongs to a project only if it names one. */
export interface ProjectTable extends SQLiteTable {
  readonly org_id: Column<string>;
  readonly project_id: Column<string | null>;
}

/** A table of an organisation, or the table of organisations. */
export type OrganizationTable = (SQLiteTable & { readonly org_id: Column<string> }) | typeof organizations;

/** A table without an owner, such as people. */
export type FreeTable = SQLiteTable & { readonly org_id?: never };

export type Condition = SQL | undefined;
/** The changes of a row. `Owner`: the owner's columns, which cannot be changed. */
export type Changes<T extends SQLiteTable, Owner extends string> = Omit<SQLiteUpdateSetSource<T>, Owner>;
type Columns = Record<string, AnySQLiteColumn | SQL | SQL.Aliased | SQLiteTable | SelectedFieldsFlat>;

/** Runs when it is awaited, or as one of a `batch`. */
export interface Statement<Result> extends Promise<Result>, RunnableQuery<Result, "sqlite"> {}

export interface Rows<Row> extends Statement<Row[]>, SQLWrapper {
  groupBy(...columns: SQL[]): Rows<Row>;
  orderBy(...columns: SQL[]): Rows<Row>;
  limit(rows: number): Rows<Row>;
}

export interface Write<Row> extends Statement<D1Result> {
  returning(): Statement<Row[]>;
  returning<Fields extends SelectedFieldsFlat>(fields: Fields): Statement<SelectResultFields<Fields>[]>;
}

export interface Insert<Row> extends Write<Row> {
  onConflictDoNothing(config?: { target: IndexColumn | IndexColumn[] }): Write<Row>;
  /** Replaces these columns of the existing row. */
  onConflictDoUpdate(config: { target: IndexColumn | IndexColumn[]; set: Partial<Row> }): Write<Row>;
}

/** A table that has at most one row for each row of another table, and the columns to read from it. */
interface Beside<Of> {
  readonly table: Of;
  readonly columns: Readonly<Record<string, AnySQLiteColumn>>;
  readonly on: SQL;
}
type WhatIsBeside<Others extends Readonly<Record<string, Beside<SQLiteTable> | null>>> = {
  readonly [Name in keyof Others]: SelectResultFields<NonNullable<Others[Name]>["columns"]> | null;
};

/** Statements about the rows of one owner. `Owner`: the owner's columns, which only this class writes. */
class Owned<Of extends SQLiteTable, Owner extends string> {
  readonly #d1: DrizzleD1Database;
  readonly #ownerOf: (table: SQLiteTable) => Readonly<Record<string, string>>;

  constructor(database: Database, ownerOf: (table: SQLiteTable) => Readonly<Record<string, string>>) {
    this.#d1 = drizzle(database.main);
    this.#ownerOf = ownerOf;
  }

  /** Rows that meet all the conditions. */
  select<T extends Of>(table: T, ...conditions: Condition[]): Rows<T["$inferSelect"]> {
    const from: SQLiteTable = table;
    const rows: SQLWrapper = this.#d1.select().from(from).where(this.#where(table, conditions));
    return rows as Rows<T["$inferSelect"]>;
  }

  /** These columns of such rows; a table among them stands for all of its columns. */
  columns<Fields extends Columns>(
    fields: Fields,
    table: Of,
    ...conditions: Condition[]
  ): Rows<SelectResultFields<Fields>> {
    const from: SQLiteTable = table;
    const rows: SQLWrapper = this.#d1.select(checkedEach(fields)).from(from).where(this.#where(table, conditions));
    return rows as Rows<SelectResultFields<Fields>>;
  }

  /**
   * The same for each pair of rows that meets `on`. The first row must be the owner's; so must the other, unless its
   * table has no owner.
   */
  joined<Fields extends Columns>(
    fields: Fields,
    [table, other]: readonly [Of, Of | FreeTable],
    on: SQL,
    ...conditions: Condition[]
  ): Rows<SelectResultFields<Fields>> {
    const from: SQLiteTable = table;
    const beside: SQLiteTable = other;
    const pair = isFree(other) ? checked(on) : this.#where(other, [on]);
    const pairs = this.#d1.select(checkedEach(fields)).from(from).where(this.#where(table, conditions)).$dynamic();
    const rows: SQLWrapper = pairs.innerJoin(beside, pair);
    return rows as Rows<SelectResultFields<Fields>>;
  }

  /**
   * Such rows, each with the columns of the one row of other tables that meets `on`, by name; null if there is no such
   * row or no such table. The first of these columns must be one that is never null in a row.
   */
  withBeside<Fields extends Columns, Others extends Readonly<Record<string, Beside<Of> | null>>>(
    fields: Fields,
    table: Of,
    others: Others,
    ...conditions: Condition[]
  ): Rows<SelectResultFields<Fields> & WhatIsBeside<Others>> {
    const from: SQLiteTable = table;
    const named = Object.entries(others).map(
      ([name, other]) => [name, other === null ? sql`null` : checkedEach(other.columns)] as const,
    );
    const all = { ...checkedEach(fields), ...Object.fromEntries(named) };
    const found = this.#d1.select(all).from(from).where(this.#where(table, conditions)).$dynamic();
    for (const other of Object.values(others)) {
      if (other === null) continue;
      const joined: SQLiteTable = other.table;
      // This changes the statement in place.
      found.leftJoin(joined, this.#where(joined, [other.on]));
    }
    const rows: SQLWrapper = found;
    return rows as Rows<SelectResultFields<Fields> & WhatIsBeside<Others>>;
  }

  insert<T extends Of>(table: T, row: Omit<T["$inferInsert"], Owner>): Insert<T["$inferSelect"]> {
    const into: SQLiteTable = table;
    return this.#d1.insert(into).values({ ...row, ...this.#ownerOf(table) });
  }

  /** Inserts the row if the condition holds then. Columns that are not given are null. */
  insertIf<T extends Of>(condition: SQL, table: T, row: Omit<T["$inferInsert"], Owner>): Write<T["$inferSelect"]> {
    const given: Readonly<Record<string, unknown>> = { ...row, ...this.#ownerOf(table) };
    // In the order of the table's columns.
    const values = Object.entries(getTableColumns(table)).map(([name, column]) =>
      given[name] === undefined || given[name] === null ? sql`null` : sql`${sql.param(given[name], column)}`,
    );
    const into: SQLiteTable = table;
    return this.#d1.insert(into).select(sql`select ${sql.join(values, sql`, `)} where ${checked(condition)}`);
  }

  update<T extends Of>(table: T, changes: Changes<T, Owner>, ...conditions: Condition[]): Write<T["$inferSelect"]> {
    const changed: SQLiteTable = table;
    return this.#d1
      .update(changed)
      .set(checkedEach({ ...changes }))
      .where(this.#where(table, conditions));
  }

  delete<T extends Of>(table: T, ...conditions: Condition[]): Write<T["$inferSelect"]> {
    const from: SQLiteTable = table;
    return this.#d1.delete(from).where(this.#where(table, conditions));
  }

  /** Runs all of these or none. */
  batch<Item extends BatchItem<"sqlite">, Items extends Readonly<[Item, ...Item[]]>>(
    statements: Items,
  ): Promise<BatchResponse<Items>> {
    return this.#d1.batch(statements);
  }

  #where(table: SQLiteTable, conditions: readonly Condition[]): SQL | undefined {
    const owner = this.#ownerOf(table);
    const columns = Object.entries(getTableColumns(table)).filter(([name]) => name in owner);
    const owned = columns.map(([name, column]) => eq(column, owner[name]));
    if (owned.length < Object.keys(owner).length) throw new Error(`${getTableName(table)} names no such owner`);
    return and(...owned, ...conditions.map(checked));
  }
}

export type InProject = Owned<ProjectTable, "org_id" | "project_id">;
export type InOrganization = Owned<OrganizationTable, "org_id">;

function isFree(table: SQLiteTable): boolean {
  return table !== organizations && !("org_id" in getTableColumns(table));
}

/** Rows of one project. */
export function inProject(database: Database, { orgId, projectId }: Scope): InProject {
  return new Owned(database, () => ({ org_id: orgId, project_id: projectId }));
}

/** Rows of one organisation, in any of its projects. The organisation's own row is found by its id. */
export function inOrganization(database: Database, orgId: string): InOrganization {
  return new Owned(database, (table) => (table === organizations ? { id: orgId } : { org_id: orgId }));
}

/** Holds while the project exists and its deletion has not begun. */
export function isOpenProject(database: Database, { orgId, projectId }: Scope): SQL {
  const owned = inOrganization(database, orgId);
  return exists(owned.columns({ id: projects.id }, projects, eq(projects.id, projectId), isNull(projects.deleted_at)));
}

/** Returns an expression unchanged. Throws if it names a table, because it would read rows of all owners. */
function checked<Given extends Condition>(given: Given): Given {
  for (const chunk of given?.queryChunks ?? []) {
    if (is(chunk, Table)) throw new Error(`an expression names the table ${getTableName(chunk)}: ask with exists(…)`);
    if (is(chunk, SQL)) checked(chunk);
  }
  return given;
}

function checkedEach<Given extends Readonly<Record<string, unknown>>>(given: Given): Given {
  for (const value of Object.values(given)) {
    if (is(value, SQL)) checked(value);
    if (is(value, SQL.Aliased)) checked(value.sql);
  }
  return given;
}

/** The purposes of queries without an owner. */
export type Unscoped =
  | "key by hash"
  | "session by hash"
  | "sign-in code by hash"
  | "report link by hash"
  | "trainer token by hash"
  | "trigger by id"
  | "invitation by hash"
  | "person by e-mail"
  | "bootstrap"
  | "published environments"
  | "operator"
  | "prices";

/** The database without an owner's condition, only for the named purpose. */
export function unscoped(database: Database, _for: Unscoped): DrizzleD1Database {
  return drizzle(database.main);
}
