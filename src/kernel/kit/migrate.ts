/**
 * Changes the tables inside an object that was created with an older schema. Each migration has a name and is applied
 * once, in order, when the object is next opened. A migration is never edited once it has landed.
 */
import type { SqlInterface } from "./rows.ts";

export interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

/** The part of an object's storage that is used here: `DurableObjectStorage` has it. */
export interface MigratedStorage {
  readonly sql: SqlInterface;
  readonly kv: { get<Value>(key: string): Value | undefined; put<Value>(key: string, value: Value): void };
  transactionSync<T>(run: () => T): T;
}

/** Applies all due migrations or none. Only for an object that was created; any other must stay empty. */
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
