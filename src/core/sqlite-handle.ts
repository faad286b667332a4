/**
 * A database of `node:sqlite` as `can.sql` needs it. core has no Node: what is asked of the handle is written down here,
 * and Node's `DatabaseSync` has it.
 */
import type { SqlDatabase, SqlValue } from "./environments/rollout-sql.ts";

export interface SqliteHandle {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
}

export interface SqliteStatement {
  /** The text of this statement: the first of those it was prepared from. */
  readonly sourceSQL: string;
  setReadBigInts(enabled: boolean): void;
  run(): unknown;
  iterate(...params: SqlValue[]): Iterable<Record<string, unknown>>;
  get(): Record<string, unknown> | undefined;
}

export function databaseOf(handle: SqliteHandle): SqlDatabase {
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
      const size = handle.prepare(
        "select page_count * page_size as bytes from pragma_page_count, pragma_page_size",
      );
      return Number(size.get()?.["bytes"] ?? 0);
    },
  };
}

/** Space, comments, and the beginning of anything else. */
const TOKENS = /\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\s\S]/g;

function holdsStatement(text: string): boolean {
  for (const [token] of text.matchAll(TOKENS)) if (!/^(\s|--|\/\*)/.test(token)) return true;
  return false;
}

function* rowsOf(handle: SqliteHandle, query: string, params: readonly SqlValue[]) {
  let rest = query;
  for (;;) {
    const statement = handle.prepare(rest);
    rest = rest.slice(statement.sourceSQL.length);
    if (holdsStatement(rest)) {
      statement.run();
      continue;
    }
    // As numbers, like the platform gives them: of itself the handle refuses integers beyond 2^53.
    statement.setReadBigInts(true);
    for (const row of statement.iterate(...params)) yield withNumbers(row);
    return;
  }
}

function withNumbers(row: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === "bigint" ? Number(value) : value,
  ]);
  return Object.fromEntries(members);
}
