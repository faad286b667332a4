/** The SQLite of an object, with counters of the work of its statements. */

/** Since the last call: rows read, rows of indexes and tables written, and statements. */
export type RowsRun = () => { readonly read: number; readonly written: number; readonly statements: number };

export function countingRows(sql: SqlStorage): { readonly sql: SqlStorage; readonly rows: RowsRun } {
  let ran: Pick<SqlStorageCursor<Record<string, SqlStorageValue>>, "rowsRead" | "rowsWritten">[] = [];
  const exec = <Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: SqlStorageValue[]) => {
    const cursor = sql.exec<Row>(query, ...bindings);
    ran.push(cursor);
    return cursor;
  };
  const rows = () => {
    const sum = (of: "rowsRead" | "rowsWritten") => ran.reduce((all, cursor) => all + cursor[of], 0);
    const counted = { read: sum("rowsRead"), written: sum("rowsWritten"), statements: ran.length };
    ran = [];
    return counted;
  };
  return { sql: new Proxy(sql, { get: (of, name) => (name === "exec" ? exec : Reflect.get(of, name, of)) }), rows };
}
