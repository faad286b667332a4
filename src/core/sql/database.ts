/** What is asked of a database, whichever runtime has it. */
export type SqlValue = string | number | null;

/** A database as both runtimes can offer it. Errors are thrown as SQLite words them. */
export interface SqlDatabase {
  /** Runs one statement, and gives its rows. Not reading on is allowed. */
  rows(query: string, params: readonly SqlValue[]): Iterable<Readonly<Record<string, unknown>>>;
  /** Undoes what was written when `run` throws. */
  atomically<T>(run: () => T): T;
  sizeBytes(): number;
}
