/** A state directory whose database has these migrations. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export function withMigrations(directory: string, names: readonly string[]): string {
  const folder = join(directory, "store/d1/miniflare-D1DatabaseObject");
  mkdirSync(folder, { recursive: true });
  // The local runtime keeps its records about objects next to them.
  new DatabaseSync(join(folder, "metadata.sqlite")).close();
  const database = new DatabaseSync(join(folder, "0a1b.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY, name TEXT UNIQUE)");
  for (const name of names) database.prepare("INSERT INTO d1_migrations (name) VALUES (?)").run(name);
  database.close();
  return directory;
}
