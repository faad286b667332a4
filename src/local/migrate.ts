/**
 * Brings the database to the state of `migrations/`, in the same table and by the same names as `wrangler d1
 * migrations apply`. A migration and the row that records it land together or not at all.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Miniflare } from "miniflare";
import type { Scope } from "../contract/scope.ts";
import { DirectoryUnusable } from "./directory-unusable.ts";

type Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;

const TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** Applies what is missing, in order of name, and returns the names. */
export async function migrate(database: Database, folder: string): Promise<string[]> {
  await database.prepare(TABLE).run();
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
 * Throws DirectoryUnusable for a state directory whose data another release of Rollcall wrote: its database names a
 * migration that is not in `folder`, and its objects may have other tables. Reads the file itself and writes nothing:
 * to be called before workerd is started on it, which takes up at once what the directory left under way.
 */
export function refuseForeignData(directory: string, folder: string): void {
  const known = new Set(migrationsIn(folder));
  const foreign = appliedIn(join(directory, "store/d1")).find((name) => !known.has(name));
  if (foreign === undefined) return;
  const message = `${directory} was written by another release of Rollcall, whose data this release cannot read: move it away`;
  throw new DirectoryUnusable("directory_unusable", message, new Error(`it has the migration ${foreign}`));
}

/** Names of the migrations that databases below the folder say they have. */
function appliedIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sqlite"));
  return files.flatMap((file) => namesIn(join(folder, file)));
}

function namesIn(file: string): string[] {
  let database: DatabaseSync | null = null;
  try {
    // Loaded where there is a file to read: some releases of Node print a warning when it is.
    const { DatabaseSync: Sqlite } = process.getBuiltinModule("node:sqlite");
    database = new Sqlite(file, { readOnly: true });
    const table = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").get();
    if (table === undefined) return [];
    return database
      .prepare("SELECT name FROM d1_migrations")
      .all()
      .map(({ name }) => String(name));
  } catch (error) {
    // A database that cannot be read, or has no room to be opened: the boot finds that by itself, and says so.
    if (error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR") return [];
    throw error;
  } finally {
    database?.close();
  }
}

/** As drizzle-kit writes them: apart by a mark, which is a comment to whoever else reads the file. */
export function statementsIn(migration: string): string[] {
  const statements = migration.split("--> statement-breakpoint");
  return statements.map((statement) => statement.trim()).filter((statement) => statement !== "");
}

function migrationsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
}

/** What the key of a local platform may do. */
const LOCAL_SCOPES = JSON.stringify(["admin", "operator"]);

/** Whether the local key was revoked, rotated, given an end or other scopes: its token must not be let in again. */
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
 * The organisation and the project of a local platform, and the key that may do everything there: the database knows
 * only its hash. It is let in at every boot, since whoever has the directory has all that is in it: for one that is
 * spent (`isLocalKeySpent`) the caller brings another token. `now`: epoch milliseconds.
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
