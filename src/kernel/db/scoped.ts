/**
 * The only way to D1. A caller names the owner of the rows once, and gets statements that always have the owner's
 * condition. It is added here, to each table that a statement reads or changes, and the owner's columns are written
 * here. The D1 database with the owner's rows is picked here, too; a statement or a batch for two of them throws.
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
import { isOfDeployment, organizations, projects } from "./schema.ts";

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
  readonly #database: Database;
  /** The D1 database with the owner's rows, except those of `isOfDeployment`. */
  readonly #own: D1Database;
  readonly #ownerOf: (table: SQLiteTable) => Readonly<Record<string, string>>;

  constructor(database: Database, orgId: string, ownerOf: (table: SQLiteTable) => Readonly<Record<string, string>>) {
    this.#database = database;
    this.#own = database.of(orgId);
    this.#ownerOf = ownerOf;
  }

  /** Rows that meet all the conditions. */
  select<T extends Of>(table: T, ...conditions: Condition[]): Rows<T["$inferSelect"]> {
    const from: SQLiteTable = table;
    const rows: SQLWrapper = this.#on(table).select().from(from).where(this.#where(table, conditions));
    return rows as Rows<T["$inferSelect"]>;
  }

  /** These columns of such rows; a table among them stands for all of its columns. */
  columns<Fields extends Columns>(
    fields: Fields,
    table: Of,
    ...conditions: Condition[]
  ): Rows<SelectResultFields<Fields>> {
    const from: SQLiteTable = table;
    const rows: SQLWrapper = this.#on(table)
      .select(this.#checkedEach(fields, table))
      .from(from)
      .where(this.#where(table, conditions));
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
    const pair = isFree(other) ? this.#checked(on, table) : this.#where(other, [on], table);
    const pairs = this.#on(table)
      .select(this.#checkedEach(fields, table))
      .from(from)
      .where(this.#where(table, conditions))
      .$dynamic();
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
      ([name, other]) => [name, other === null ? sql`null` : this.#checkedEach(other.columns, table)] as const,
    );
    const all = { ...this.#checkedEach(fields, table), ...Object.fromEntries(named) };
    const found = this.#on(table).select(all).from(from).where(this.#where(table, conditions)).$dynamic();
    for (const other of Object.values(others)) {
      if (other === null) continue;
      const joined: SQLiteTable = other.table;
      // This changes the statement in place.
      found.leftJoin(joined, this.#where(joined, [other.on], table));
    }
    const rows: SQLWrapper = found;
    return rows as Rows<SelectResultFields<Fields> & WhatIsBeside<Others>>;
  }

  insert<T extends Of>(table: T, row: Omit<T["$inferInsert"], Owner>): Insert<T["$inferSelect"]> {
    const into: SQLiteTable = table;
    return this.#on(table)
      .insert(into)
      .values({ ...row, ...this.#ownerOf(table) });
  }

  /** Inserts the row if the condition holds then. Columns that are not given are null. */
  insertIf<T extends Of>(condition: SQL, table: T, row: Omit<T["$inferInsert"], Owner>): Write<T["$inferSelect"]> {
    const given: Readonly<Record<string, unknown>> = { ...row, ...this.#ownerOf(table) };
    // In the order of the table's columns.
    const values = Object.entries(getTableColumns(table)).map(([name, column]) =>
      given[name] === undefined || given[name] === null ? sql`null` : sql`${sql.param(given[name], column)}`,
    );
    const into: SQLiteTable = table;
    const selected = sql`select ${sql.join(values, sql`, `)} where ${this.#checked(condition, table)}`;
    return this.#on(table).insert(into).select(selected);
  }

  update<T extends Of>(table: T, changes: Changes<T, Owner>, ...conditions: Condition[]): Write<T["$inferSelect"]> {
    const changed: SQLiteTable = table;
    return this.#on(table)
      .update(changed)
      .set(this.#checkedEach({ ...changes }, table))
      .where(this.#where(table, conditions));
  }

  delete<T extends Of>(table: T, ...conditions: Condition[]): Write<T["$inferSelect"]> {
    const from: SQLiteTable = table;
    return this.#on(table).delete(from).where(this.#where(table, conditions));
  }

  /** Runs all of these or none. Throws if they are for several D1 databases. */
  batch<Item extends BatchItem<"sqlite">, Items extends Readonly<[Item, ...Item[]]>>(
    statements: Items,
  ): Promise<BatchResponse<Items>> {
    const [first, ...others] = statements.map(targetOf);
    if (first === undefined || others.some((other) => other !== first)) {
      throw new Error("a batch has statements for several D1 databases: run those of each on their own");
    }
    return drizzle(first).batch(statements);
  }

  /**
   * Runs statements about any tables: those of each D1 database in one batch, all of them or none. For counts, and for
   * work that is repeated until nothing is left. The results are in the order of the statements.
   */
  async batches<Result>(statements: readonly Statement<Result>[]): Promise<Result[]> {
    const results: Result[] = [];
    for (const d1 of new Set(statements.map(targetOf))) {
      const its = statements.flatMap((statement, at) => (targetOf(statement) === d1 ? [{ statement, at }] : []));
      const [first, ...others] = its.map(({ statement }) => statement);
      if (first === undefined) continue;
      const found: readonly Result[] = await drizzle(d1).batch([first, ...others]);
      for (const [n, result] of found.entries()) {
        const place = its[n];
        if (place !== undefined) results[place.at] = result;
      }
    }
    return results;
  }

  /** The D1 database with the owner's rows of a table. */
  #targetOf(table: SQLiteTable): D1Database {
    return isOfDeployment(table) ? this.#database.main : this.#own;
  }

  #on(table: SQLiteTable): DrizzleD1Database {
    return drizzle(this.#targetOf(table));
  }

  /** An expression of a statement about `table`. */
  #checked<Given extends Condition>(given: Given, table: SQLiteTable): Given {
    return checked(given, this.#targetOf(table));
  }

  #checkedEach<Given extends Readonly<Record<string, unknown>>>(given: Given, table: SQLiteTable): Given {
    for (const value of Object.values(given)) {
      if (is(value, SQL)) this.#checked(value, table);
      if (is(value, SQL.Aliased)) this.#checked(value.sql, table);
    }
    return given;
  }

  /** `from`: the first table of the statement, if this is another one. */
  #where(table: SQLiteTable, conditions: readonly Condition[], from: SQLiteTable = table): SQL | undefined {
    if (this.#targetOf(table) !== this.#targetOf(from)) throw mixed();
    const owner = this.#ownerOf(table);
    const columns = Object.entries(getTableColumns(table)).filter(([name]) => name in owner);
    const owned = columns.map(([name, column]) => eq(column, owner[name]));
    if (owned.length < Object.keys(owner).length) throw new Error(`${getTableName(table)} names no such owner`);
    return and(...owned, ...conditions.map((condition) => this.#checked(condition, table)));
  }
}

export type InProject = Owned<ProjectTable, "org_id" | "project_id">;
export type InOrganization = Owned<OrganizationTable, "org_id">;

function isFree(table: SQLiteTable): boolean {
  return table !== organizations && !("org_id" in getTableColumns(table));
}

/** Rows of one project. */
export function inProject(database: Database, { orgId, projectId }: Scope): InProject {
  return new Owned(database, orgId, () => ({ org_id: orgId, project_id: projectId }));
}

/** Rows of one organisation, in any of its projects. The organisation's own row is found by its id. */
export function inOrganization(database: Database, orgId: string): InOrganization {
  return new Owned(database, orgId, (table) => (table === organizations ? { id: orgId } : { org_id: orgId }));
}

/** Holds while the project exists and its deletion has not begun. */
export function isOpenProject(database: Database, { orgId, projectId }: Scope): SQL {
  const owned = inOrganization(database, orgId);
  return exists(owned.columns({ id: projects.id }, projects, eq(projects.id, projectId), isNull(projects.deleted_at)));
}

/**
 * Returns an expression unchanged. Throws if it names a table, because it would read rows of all owners, or has a statement
 * for another D1 database, because it would find no rows.
 */
function checked<Given extends Condition>(given: Given, d1: D1Database): Given {
  for (const chunk of given?.queryChunks ?? []) {
    if (is(chunk, Table)) throw new Error(`an expression names the table ${getTableName(chunk)}: ask with exists(…)`);
    if (is(chunk, SQL)) checked(chunk, d1);
    else if (isStatement(chunk) && targetOf(chunk) !== d1) throw mixed();
  }
  return given;
}

function isStatement(chunk: unknown): chunk is object {
  return typeof chunk === "object" && chunk !== null && "session" in chunk;
}

/** The D1 database that a statement of drizzle is for. */
function targetOf(statement: object): D1Database {
  const { session } = statement as { readonly session?: { readonly client?: D1Database } };
  if (session?.client === undefined) throw new Error("a statement without a D1 database");
  return session.client;
}

function mixed(): Error {
  return new Error("a statement is for several D1 databases: read each of them on its own");
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

/** A D1 database without an owner's condition, only for the named purpose. */
export function unscoped(d1: D1Database, _for: Unscoped): DrizzleD1Database {
  return drizzle(d1);
}
