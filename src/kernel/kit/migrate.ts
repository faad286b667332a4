/**
 * Changes of the tables inside an object, for objects that were made before them: each has a name and is applied once,
 * in order, when the object is next opened. Never edited once landed.
 */
import type { SqlDoor } from "./rows.ts";

export interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

/** What is asked of an object's storage: `DurableObjectStorage` is one. */
export interface MigratedStorage {
  readonly sql: SqlDoor;
  readonly kv: { get<Value>(key: string): Value | undefined; put<Value>(key: string, value: Value): void };
  transactionSync<T>(run: () => T): T;
}

/** All of what is due or none. For an object that was made; one that was not must stay empty. */
export function migrate(storage: MigratedStorage, migrations: readonly Migration[]): void {
  const applied = storage.kv.get<string[]>("migrations") ?? [];
  const due = migrations.filter(({ name }) => !applied.includes(name));
  if (due.length === 0) return;
  storage.transactionSync(() => {
    for (const { statements } of due) {
      for (const statement of statements) storage.sql.exec(statement);
    }
    storage.kv.put("migrations", [...applied, ...due.map(({ name }) => name)]);
  });
}
