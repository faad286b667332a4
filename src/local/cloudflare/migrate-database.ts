/** The schema of a deployed D1 database: what was applied to it, and what this release adds. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS_TABLE, migrationsIn } from "../migrate.ts";
import type { RemoteDatabase } from "./account.ts";

/** The names of applied migrations, in their order. */
export async function appliedMigrations(database: RemoteDatabase): Promise<string[]> {
  if (!(await database.hasTable("d1_migrations"))) return [];
  const rows = await database.query("SELECT name FROM d1_migrations ORDER BY id");
  return rows.map(({ name }) => String(name));
}

/**
 * Applies the folder's migrations that the database lacks, in the order of their names, and returns their names. Each
 * is written together with the row that records it, so an interrupted call can be repeated.
 */
export async function migrateDatabase(database: RemoteDatabase, folder: string): Promise<string[]> {
  const applied = new Set(await appliedMigrations(database));
  const missing = migrationsIn(folder).filter((name) => !applied.has(name));
  if (missing.length > 0) await database.query(MIGRATIONS_TABLE);
  for (const name of missing) {
    const statements = readFileSync(join(folder, name), "utf8").trim().replace(/;?$/, ";");
    await database.query(`${statements}\nINSERT INTO d1_migrations (name) VALUES ('${name}');`);
  }
  return missing;
}
