/** The database of `can.sql`, as both runtimes can offer it, and one on `node:sqlite` for an author's tests. */
import { LIMITS } from "../../contract/limits.ts";

/** A parameter of a statement. */
export type SqlValue = string | number | null;

/** A database as both runtimes can offer it. Errors have SQLite's messages. */
export interface SqlDatabase {
  /** Runs one statement, and returns its rows. The caller may stop reading. */
  rows(query: string, params: readonly SqlValue[]): Iterable<Readonly<Record<string, unknown>>>;
  /** Rolls back if `run` throws. */
  atomically<T>(run: () => T): T;
  sizeBytes(): number;
}

/**
 * The part of a `node:sqlite` database that `can.sql` needs. core has no Node, so the type is declared here; Node's
 * `DatabaseSync` fits it.
 */
export interface SqliteHandle {
  /** Limits that SQLite enforces itself. */
  readonly limits?: Partial<Record<keyof typeof PLATFORM, number>>;
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
}

export interface SqliteStatement {
  setReadBigInts(enabled: boolean): void;
  iterate(...params: SqlValue[]): Iterable<Record<string, unknown>>;
  get(): Record<string, unknown> | undefined;
}

/** The limits of the platform's SQLite: a query that passes in a test also passes there. */
const PLATFORM = {
  length: LIMITS.sqlValueBytes,
  sqlLength: 2 * LIMITS.sqlQueryBytes,
  column: LIMITS.sqlColumns,
  exprDepth: LIMITS.sqlDepth,
  compoundSelect: LIMITS.sqlUnions,
  vdbeOp: LIMITS.sqlOps,
  likePatternLength: LIMITS.sqlPatternBytes,
  variableNumber: LIMITS.sqlParameters,
  triggerDepth: LIMITS.sqlTriggerDepth,
};

export function databaseOf(handle: SqliteHandle): SqlDatabase {
  Object.assign(handle.limits ?? {}, PLATFORM);
  return {
    rows: (query, params) => rowsOf(handle, query, params),
    atomically(run) {
      handle.exec("savepoint call");
      try {
        const result = run();
        handle.exec("release call");
        return result;
      } catch (thrown) {
        handle.exec("rollback to call; release call");
        throw thrown;
      }
    },
    sizeBytes() {
      const size = handle.prepare("select page_count * page_size as bytes from pragma_page_count, pragma_page_size");
      return Number(size.get()?.["bytes"] ?? 0);
    },
  };
}

function* rowsOf(handle: SqliteHandle, query: string, params: readonly SqlValue[]) {
  const statement = handle.prepare(query);
  // As numbers, like on the platform: by default the handle refuses integers beyond 2^53.
  statement.setReadBigInts(true);
  for (const row of statement.iterate(...params)) yield withNumbers(row);
}

function withNumbers(row: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]);
  return Object.fromEntries(members);
}
