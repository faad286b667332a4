/** A ledger in Node's own SQLite, in which any write can fail as if the process had died. */
import { DatabaseSync } from "node:sqlite";
import type { LedgerStorage } from "../../../src/billing/ledger/ledger-schema.ts";

export class Died extends Error {
  override readonly name = "Died";
}

export class MemoryStorage implements LedgerStorage {
  readonly #database = new DatabaseSync(":memory:");
  readonly #kept = new Map<string, unknown>();
  /** The number of writes after which the process dies; null: never. */
  diesAfter: number | null = null;

  readonly sql: LedgerStorage["sql"] = {
    exec: <Row extends Record<string, SqlStorageValue>>(query: string, ...bindings: SqlStorageValue[]) => {
      const rows = this.#exec(query, bindings);
      return { toArray: () => rows as Row[] };
    },
  };
  readonly kv: LedgerStorage["kv"] = {
    get: <Value>(key: string) => this.#kept.get(key) as Value | undefined,
    put: (key, value) => {
      this.#kept.set(key, value);
    },
  };

  transactionSync<T>(run: () => T): T {
    this.#database.exec("savepoint one");
    try {
      const result = run();
      if (this.diesAfter !== null) this.#live();
      this.#database.exec("release one");
      return result;
    } catch (thrown) {
      this.#database.exec("rollback to one; release one");
      throw thrown;
    }
  }

  /** Undoes the writes of `use` afterwards; much faster than a new database each time. */
  undone(use: () => void): void {
    this.#database.exec("savepoint history");
    try {
      use();
    } finally {
      this.diesAfter = null;
      this.#database.exec("rollback to history; release history");
    }
  }

  #exec(query: string, bindings: readonly SqlStorageValue[]): Record<string, unknown>[] {
    const statement = this.#prepared(query);
    if (!/^\s*select/.test(query)) this.#live();
    const values = bindings.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    return statement.all(...values);
  }

  readonly #statements = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  #prepared(query: string) {
    const known = this.#statements.get(query);
    if (known !== undefined) return known;
    const made = this.#database.prepare(query);
    this.#statements.set(query, made);
    return made;
  }

  #live(): void {
    if (this.diesAfter === null) return;
    if (this.diesAfter === 0) throw new Died("between two writes");
    this.diesAfter -= 1;
  }
}
