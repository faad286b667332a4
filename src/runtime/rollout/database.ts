/** The SQLite of an object, as `can.sql` needs it. */
import type { SqlDatabase, SqlValue } from "../../core/sql/database.ts";

/** Rows read on of a query that gave too many: its tables stay locked until it has ended. */
const READ_ON = 100_000;

export function rolloutDatabase(storage: DurableObjectStorage): SqlDatabase {
  return {
    rows: (query, params) => rowsOf(storage.sql, query, params),
    atomically: (run) => storage.transactionSync(run),
    sizeBytes: () => storage.sql.databaseSize,
  };
}

function* rowsOf(sql: SqlStorage, query: string, params: readonly SqlValue[]) {
  const cursor = sql.exec(query, ...params);
  try {
    for (let row = cursor.next(); row.done !== true; row = cursor.next()) yield row.value;
  } finally {
    // Nothing commits while a statement that writes is left unfinished. Its writes are done before its first row.
    let left = cursor.rowsWritten > 0 ? Number.POSITIVE_INFINITY : READ_ON;
    while (left > 0 && cursor.next().done !== true) left -= 1;
  }
}
