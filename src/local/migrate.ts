/**
 * Applies `migrations/` to the database, with the same table and names as `wrangler d1 migrations apply`. A migration
 * and the row that records it are written together or not at all.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Miniflare } from "miniflare";
import type { Scope } from "../contract/scope.ts";
import { DirectoryUnusable } from "./directory-unusable.ts";

type Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;

/** The same as that of `wrangler d1 migrations apply`. */
export const MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** Applies missing migrations in the order of their names, and returns their names. */
export async function migrate(database: Database, folder: string): Promise<string[]> {
  await database.prepare(MIGRATIONS_TABLE).run();
  const { results } = await database.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set(results.map((row) => row["name"]));
  const missing = migrationsIn(folder).filter((name) => !applied.has(name));
  if (missing.length === 0) return [];
  for (const name of missing) {
    const statements = statementsIn(readFileSync(join(folder, name), "utf8"));
    await database.batch([
      ...statements.map((statement) => database.prepare(statement)),
      database.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name),
    ]);
  }
  return missing;
}

/**
 * Throws DirectoryUnusable if another release of Rollcall wrote the state directory: its database names a migration
 * that is not in `folder`, and its objects may have other tables. Reads the file directly and writes nothing. Call it
 * before workerd is started, since workerd immediately continues the directory's unfinished work.
 */
export function refuseForeignData(directory: string, folder: string): void {
  const known = new Set(migrationsIn(folder));
  const foreign = appliedIn(join(directory, "store/d1")).find((name) => !known.has(name));
  if (foreign === undefined) return;
  const message = `${directory} was written by another release of Rollcall, whose data this release cannot read: move it away`;
  throw new DirectoryUnusable("directory_unusable", message, new Error(`it has the migration ${foreign}`));
}

/** Names of the migrations that were applied to databases below the folder. */
function appliedIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sqlite"));
  return files.flatMap((file) => namesIn(join(folder, file)));
}

function namesIn(file: string): string[] {
  let database: DatabaseSync | null = null;
  try {
    // Loaded only if there is a file to read: some releases of Node print a warning when it is loaded.
    const { DatabaseSync: Sqlite } = process.getBuiltinModule("node:sqlite");
    database = new Sqlite(file, { readOnly: true });
    const table = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").get();
    if (table === undefined) return [];
    return database
      .prepare("SELECT name FROM d1_migrations")
      .all()
      .map(({ name }) => String(name));
  } catch (error) {
    // A database that cannot be read, or has no space to be opened: the boot itself finds and reports that.
    if (error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR") return [];
    throw error;
  } finally {
    database?.close();
  }
}

/** Splits a migration of drizzle-kit at its marker, which is a comment for other readers. */
export function statementsIn(migration: string): string[] {
  const statements = migration.split("--> statement-breakpoint");
  return statements.map((statement) => statement.trim()).filter((statement) => statement !== "");
}

/** The names of the migrations of a folder, in the order in which they are applied. */
export function migrationsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
}

/** The scopes of a local platform's key. */
const LOCAL_SCOPES = JSON.stringify(["admin", "operator"]);

/**
 * Whether the local key was revoked, rotated, or got an expiry or other scopes: its token must not be accepted again.
 */
export async function isLocalKeySpent(database: Database, keyId: string): Promise<boolean> {
  const spent = await database
    .prepare(
      "SELECT 1 FROM api_keys WHERE id = ? AND (revoked_at IS NOT NULL OR rotated_to IS NOT NULL " +
        "OR expires_at IS NOT NULL OR scopes != ?)",
    )
    .bind(keyId, LOCAL_SCOPES)
    .first();
  return spent !== null;
}

/**
 * Creates the organisation and the project of a local platform, and its key with all scopes; the database has only the
 * key's hash. The key is accepted again at every boot, since anyone with the directory has all of its data. For a spent
 * key (`isLocalKeySpent`), the caller must pass a new token. `now`: epoch milliseconds.
 */
export async function seedAccount(
  database: Database,
  { orgId, projectId, keyId, key }: Scope & { readonly keyId: string; readonly key: string },
  now: number,
): Promise<void> {
  const hash = createHash("sha256").update(key).digest("hex");
  await database.batch([
    database
      .prepare("INSERT OR IGNORE INTO organizations (id, name, limits, created_at) VALUES (?, 'local', '{}', ?)")
      .bind(orgId, now),
    database
      .prepare(
        "INSERT OR IGNORE INTO projects (id, org_id, name, retention, created_at) VALUES (?, ?, 'default', '{}', ?)",
      )
      .bind(projectId, orgId, now),
    database
      .prepare(
        "INSERT INTO api_keys (id, org_id, project_id, name, hash, prefix, last4, scopes, created_by, created_at) " +
          "VALUES (?, ?, NULL, 'local', ?, ?, ?, ?, 'bootstrap', ?) " +
          "ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, prefix = excluded.prefix, last4 = excluded.last4, " +
          "scopes = excluded.scopes, revoked_at = NULL, expires_at = NULL, rotated_to = NULL",
      )
      .bind(keyId, orgId, hash, key.slice(0, 7), key.slice(-4), LOCAL_SCOPES, now),
  ]);
}
