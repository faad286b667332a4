/**
 * Reads and writes rows of an object's SQLite. Names of tables and columns come from code, never from input. Every
 * cursor is read to its end at once: an open cursor keeps its object from committing anything more.
 */
type Columns = Readonly<Record<string, SqlStorageValue>>;

/** The part of a database that is used here: an object's `SqlStorage` has it. */
export interface SqlInterface {
  exec<Row extends Record<string, SqlStorageValue>>(
    query: string,
    ...bindings: SqlStorageValue[]
  ): { toArray(): Row[] };
}

export class Rows {
  readonly #sql: SqlInterface;

  constructor(sql: SqlInterface) {
    this.#sql = sql;
  }

  all<Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: readonly SqlStorageValue[]): Row[] {
    return this.#sql.exec<Row>(query, ...bindings).toArray();
  }

  one<Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: readonly SqlStorageValue[]): Row | null {
    return this.all<Row>(query, ...bindings)[0] ?? null;
  }

  /** `or`: what to do if the row exists already; if absent, it throws. */
  insert(table: string, columns: Columns, or?: "ignore" | "replace"): void {
    const names = Object.keys(columns);
    const values = names.map(() => "?").join(", ");
    const verb = or === undefined ? "insert" : `insert or ${or}`;
    this.#sql.exec(`${verb} into ${table} (${names.join(", ")}) values (${values})`, ...Object.values(columns));
  }

  /** Sets the named columns of the rows that have all of `key`. */
  set(table: string, key: Columns, columns: Columns): void {
    const pairs = (of: Columns) => Object.keys(of).map((name) => `${name} = ?`);
    const query = `update ${table} set ${pairs(columns).join(", ")} where ${pairs(key).join(" and ")}`;
    this.#sql.exec(query, ...Object.values(columns), ...Object.values(key));
  }
}
