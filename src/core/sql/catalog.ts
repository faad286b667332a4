/**
 * The contents of a database: the SQL of its views, triggers, indexes and tables, and the sizes of its tables.
 *
 * Invariant. Everything is read when it is first needed, and the steps of reading it are counted.
 */
import type { SqlDatabase } from "./database.ts";
import { keyOf } from "./keys.ts";
import { nameOf, statementsOf } from "./statements.ts";

export interface Entry {
  readonly type: string;
  readonly name: string;
  /** The table of an index or a trigger. */
  readonly table: string;
  readonly sql: string;
}

/** `most`: bytes of the longest row; `bytes`: of all rows together. */
export interface TableSize {
  readonly rows: number;
  readonly most: number;
  readonly bytes: number;
}

const STEPS_PER_ENTRY = 500;
const STEPS_PER_CHARACTER = 20;
/** Rows of SQLite's own virtual tables, such as `pragma_function_list`. */
const OWN_ROWS = 1000;
const OWN_TABLES = /^(pragma_\w+|sqlite_\w+|dbstat|bytecode|tables_used)$/;
/** The smallest row of SQLite, in bytes. */
const ROW_BYTES = 5;

export class Catalog {
  readonly entries: readonly Entry[];
  readonly #database: SqlDatabase;
  readonly #tokens = new Map<string, readonly string[]>();
  readonly #sizes = new Map<string, TableSize>();
  steps = 0;

  constructor(database: SqlDatabase) {
    this.#database = database;
    const rows = [...database.rows("select type, name, tbl_name, sql from sqlite_schema where sql is not null", [])];
    this.entries = rows.map(({ type, name, tbl_name, sql }) => {
      this.steps += String(sql).length + STEPS_PER_ENTRY;
      return { type: String(type), name: lower(name), table: lower(tbl_name), sql: String(sql) };
    });
  }

  /** The tokens of an entry's SQL. */
  tokens({ sql }: Entry): readonly string[] {
    const known = this.#tokens.get(sql);
    if (known !== undefined) return known;
    this.steps += STEPS_PER_CHARACTER * sql.length;
    const tokens = statementsOf(sql).flatMap((statement) => statement.tokens);
    this.#tokens.set(sql, tokens);
    return tokens;
  }

  view(name: string): Entry | undefined {
    return this.entries.find((entry) => entry.type === "view" && entry.name === name);
  }

  key(table: string): string | null {
    const [entry] = this.of(table, "table");
    return entry === undefined ? null : keyOf(this.tokens(entry));
  }

  /** Null if no table has the name. */
  size(name: string): TableSize | null {
    const isTable = this.entries.some((entry) => entry.type === "table" && entry.name === name);
    if (!isTable) return OWN_TABLES.test(name) ? this.whole() : null;
    const known = this.#sizes.get(name) ?? this.#count(name);
    this.#sizes.set(name, known);
    return known;
  }

  /** An upper bound of all tables together. */
  whole(): TableSize {
    const bytes = this.#database.sizeBytes();
    return { rows: OWN_ROWS + bytes / ROW_BYTES, most: bytes, bytes };
  }

  /** The entries of this type that belong to a table. */
  of(table: string, type: string): readonly Entry[] {
    return this.entries.filter((entry) => entry.type === type && entry.table === table);
  }

  /** Tables with a foreign key to this one. */
  children(table: string): readonly Entry[] {
    const refers = (entry: Entry) =>
      this.tokens(entry).some((token, at, all) => /^references$/i.test(token) && nameOf(all[at + 1] ?? "") === table);
    return this.entries.filter((entry) => /references/i.test(entry.sql) && refers(entry));
  }

  #count(table: string): TableSize {
    const query = "select name from pragma_table_xinfo(?) where hidden in (0, 3)";
    const columns = [...this.#database.rows(query, [table])].map(({ name }) => quote(String(name)));
    const length = addUp(columns.map((name) => `ifnull(octet_length(${name}), 0)`));
    const sizes = `select count(*) as rows, max(n) as most, sum(n) as bytes from (select ${length} as n from ${quote(table)})`;
    const [row] = this.#database.rows(sizes, []);
    const of = (name: string) => Number(row?.[name] ?? 0);
    const rows = of("rows");
    this.steps += rows * (4 + columns.length);
    const header = 9 * (columns.length + 1);
    return { rows, most: of("most") + header, bytes: of("bytes") + rows * header };
  }
}

function lower(name: unknown): string {
  return String(name).toLowerCase();
}

/** Adds as a tree, which nests less deeply than a chain. */
function addUp(terms: readonly string[]): string {
  if (terms.length < 2) return terms[0] ?? "0";
  const half = Math.ceil(terms.length / 2);
  return `(${addUp(terms.slice(0, half))} + ${addUp(terms.slice(half))})`;
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
