/**
 * How large the tables of a database are: their rows, and the bytes of a row.
 *
 * Invariants. From above. At first only the size of the whole database is known, which costs nothing to ask; a table is
 * counted when that is not enough to let a statement pass, and that counting is work too.
 */
import type { SqlDatabase } from "./database.ts";
import { type Length, LONGEST, lengthOf } from "./functions.ts";

/** No cell of SQLite's is smaller. */
const CELL_BYTES = 5;

/** So few that it makes no difference how many of them are alike. */
const FEW = 20;
const STEPS_PER_SORTED = 60;

interface Entry {
  readonly type: string;
  readonly name: string;
  readonly table: string;
}

interface Size {
  readonly rows: number;
  readonly row: Length;
}

export interface Sizes {
  rows(root: number): number;
  equalRows(root: number, columns: number): number;
  equalColumns(root: number, columns: readonly number[]): number;
  row(root: number): Length;
}

export function roughSizes(database: SqlDatabase): Sizes {
  const bytes = database.sizeBytes();
  const rows = () => bytes / CELL_BYTES;
  return { rows, equalRows: rows, equalColumns: rows, row: () => lengthOf(bytes) };
}

export class CountedSizes implements Sizes {
  readonly #database: SqlDatabase;
  readonly #entries = new Map<number, Entry | null>();
  readonly #known = new Map<number, Size>();
  readonly #equals = new Map<string, number>();
  /** What the counting itself took. */
  steps = 0;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  rows(root: number): number {
    return this.#size(root).rows;
  }

  row(root: number): Length {
    return this.#size(root).row;
  }

  equalRows(root: number, columns: number): number {
    return this.#once(`${root} ${columns}`, () => this.#equalRows(root, columns));
  }

  #equalRows(root: number, columns: number): number {
    const entry = this.#entry(root);
    if (entry?.type !== "index") return this.rows(root);
    const query = "select name, coll from pragma_index_xinfo(?) where seqno < ? order by seqno";
    const keys = [...this.#database.rows(query, [entry.name, columns])];
    const terms = keys.map(({ name, coll }) => term(name, String(coll)));
    return this.#equal(root, entry.table, terms);
  }

  equalColumns(root: number, columns: readonly number[]): number {
    return this.#once(`${root} of ${columns}`, () => this.#equalColumns(root, columns));
  }

  #equalColumns(root: number, columns: readonly number[]): number {
    const entry = this.#entry(root);
    if (entry?.type !== "table") return this.rows(root);
    const query = "select cid, name, hidden from pragma_table_xinfo(?) order by cid";
    const all = [...this.#database.rows(query, [entry.table])];
    // Where some columns are not kept, the others are not where they seem to be.
    const plain = all.every(({ hidden }) => Number(hidden) === 0);
    const terms = columns.map((column) => term(plain ? all[column]?.["name"] : null, "BINARY"));
    return this.#equal(root, entry.table, terms);
  }

  /** All values of an expression without a name may be alike. */
  #equal(root: number, table: string, terms: readonly (string | null)[]): number {
    const rows = this.rows(root);
    if (terms.includes(null) || rows < FEW) return rows;
    const query = `select max(n) as n from (select count(*) as n from ${quote(table)} group by ${terms.join(", ")})`;
    const [row] = this.#database.rows(query, []);
    this.steps += rows * STEPS_PER_SORTED;
    return Number(row?.["n"] ?? 0);
  }

  #once(key: string, count: () => number): number {
    const most = this.#equals.get(key) ?? count();
    this.#equals.set(key, most);
    return most;
  }

  #size(root: number): Size {
    const known = this.#known.get(root);
    if (known !== undefined) return known;
    const size = this.#count(root);
    this.#known.set(root, size);
    return size;
  }

  #count(root: number): Size {
    if (root === 1) return this.#ofSchema();
    const entry = this.#entry(root);
    // A table that the statement makes, or one that only the platform reads.
    if (entry === null) return { rows: 0, row: LONGEST };
    const size = this.#ofTable(entry.table);
    return entry.type === "index" && this.#isComputed(entry.name) ? { rows: size.rows, row: LONGEST } : size;
  }

  #entry(root: number): Entry | null {
    const known = this.#entries.get(root);
    if (known !== undefined) return known;
    const query = "select type, name, tbl_name from sqlite_schema where rootpage = ?";
    const [row] = this.#database.rows(query, [root]);
    const text = (name: string) => String(row?.[name]);
    const entry = row === undefined ? null : { type: text("type"), name: text("name"), table: text("tbl_name") };
    this.#entries.set(root, entry);
    return entry;
  }

  #ofSchema(): Size {
    return this.#ask("sqlite_schema", ["sql", "name"]);
  }

  #ofTable(table: string): Size {
    // Columns that are computed when they are read are not in a row.
    const columns = this.#database.rows("select name from pragma_table_xinfo(?) where hidden in (0, 3)", [table]);
    return this.#ask(
      table,
      [...columns].map(({ name }) => String(name)),
    );
  }

  #ask(table: string, columns: readonly string[]): Size {
    const length = addUp(columns.map((name) => `ifnull(octet_length(${quote(name)}), 0)`));
    const query = `select count(*) as rows, max(n) as most, sum(n) as bytes from (select ${length} as n from ${quote(table)})`;
    const [row] = this.#database.rows(query, []);
    const rows = Number(row?.["rows"] ?? 0);
    this.steps += rows * (4 + columns.length);
    const header = 9 * columns.length + 9;
    const mean = rows === 0 ? 0 : Number(row?.["bytes"] ?? 0) / rows;
    return { rows, row: lengthOf(Number(row?.["most"] ?? 0) + header, mean + header) };
  }

  /** An index of an expression, which may be longer than the row. */
  #isComputed(index: string): boolean {
    const query = "select 1 as computed from pragma_index_info(?) where cid = -2";
    return [...this.#database.rows(query, [index])].length > 0;
  }
}

function term(name: unknown, collation: string): string | null {
  return typeof name === "string" ? `${quote(name)} collate ${quote(collation)}` : null;
}

/** As a tree, which is less deep than a chain. */
function addUp(terms: readonly string[]): string {
  if (terms.length < 2) return terms[0] ?? "0";
  const half = Math.ceil(terms.length / 2);
  return `(${addUp(terms.slice(0, half))} + ${addUp(terms.slice(half))})`;
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
