/** The SQLite of an object, with a count of the work that its statements are. */

/** Rows that they have read since it was asked last, and rows of indexes and tables they wrote. */
export type RowsRun = () => { readonly read: number; readonly written: number };

export function countingRows(sql: SqlStorage): { readonly sql: SqlStorage; readonly rows: RowsRun } {
  let ran: Pick<SqlStorageCursor<Record<string, SqlStorageValue>>, "rowsRead" | "rowsWritten">[] = [];
  const exec = <Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: SqlStorageValue[]) => {
    const cursor = sql.exec<Row>(query, ...bindings);
    ran.push(cursor);
    return cursor;
  };
  const rows = () => {
    const sum = (of: "rowsRead" | "rowsWritten") => ran.reduce((all, cursor) => all + cursor[of], 0);
    const counted = { read: sum("rowsRead"), written: sum("rowsWritten") };
    ran = [];
    return counted;
  };
  return { sql: new Proxy(sql, { get: (of, name) => (name === "exec" ? exec : Reflect.get(of, name, of)) }), rows };
}
