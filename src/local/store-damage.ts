/**
 * Finds damaged files of a store before workerd is started: workerd would end, or take an empty database for a new one,
 * without a useful message.
 *
 * Damage of what everything needs is refused: D1, R2, and the index of each class of objects. Damage of a single object
 * is only reported, since everything else works without it. Pages far inside a large file are not checked.
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, sep } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { DirectoryUnusable } from "./directory-unusable.ts";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
/** In a larger file, only the schema is read. */
const CHECKED_BYTES = 256 * 1024 ** 2;
/** SQLITE_CORRUPT and SQLITE_NOTADB, without their extended codes. */
const DAMAGED = [11, 26];
const INDEX = "metadata.sqlite";

/** Throws DirectoryUnusable. `say` gets a line for each object that cannot be opened. */
export function refuseDamage(directory: string, log: (line: string) => void): void {
  const store = join(directory, "store");
  const files = databasesIn(store);
  for (const file of files) {
    const path = join(store, file);
    if (!isObject(file)) {
      const why = headerFault(path) ?? contentFault(path);
      if (why !== null) throw damaged(directory, `${path} (${nameOf(file)}) is damaged: ${why}`);
      continue;
    }
    const why = headerFault(path);
    if (why === null) continue;
    log(
      `${path} (an object of ${nameOf(file)}) is damaged: ${why}. Only its own data is lost: restore it from a copy.`,
    );
  }
  const isThere = files.some((file) => file.startsWith(`d1${sep}`) && hasTables(join(store, file)));
  if (isThere || !files.some(isObject)) return;
  const gone = "is missing or has no tables, but its objects exist";
  throw damaged(directory, `${join(store, "d1")} (the database D1) ${gone}`);
}

/** Paths of the databases relative to the store, in the form `kind/class/file`. */
function databasesIn(store: string): string[] {
  if (!existsSync(store)) return [];
  const all = (folder: string) => readdirSync(join(store, folder), { withFileTypes: true });
  const folders = (folder: string) => all(folder).filter((entry) => entry.isDirectory());
  const classes = folders(".").flatMap(({ name }) => folders(name).map((entry) => join(name, entry.name)));
  const files = classes.flatMap((folder) => all(folder).map(({ name }) => join(folder, name)));
  return files.filter((file) => file.endsWith(".sqlite")).sort();
}

function damaged(directory: string, what: string): DirectoryUnusable {
  return new DirectoryUnusable(
    "directory_unusable",
    `${what}; restore it from a copy, or move ${directory} away to start fresh`,
    null,
  );
}

/** An object of the Worker itself, not of Miniflare. */
function isObject(file: string): boolean {
  return file.startsWith(`do${sep}`) && basename(file) !== INDEX;
}

function nameOf(file: string): string {
  const [kind = "", folder = ""] = file.split(sep);
  if (kind === "do") return `class ${folder.replace(/^.*-/, "")}`;
  return { d1: "the database D1", r2: "the index of R2" }[kind] ?? kind;
}

/** What is wrong with a database's header or length; null: nothing. */
function headerFault(path: string): string | null {
  const { size, header } = beginningOf(path);
  // A new file: a kill may leave it so.
  if (size === 0) return null;
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return "it is not a SQLite database";
  const stored = header.readUInt16BE(16);
  const pageBytes = stored === 1 ? 65_536 : stored;
  // The page count is valid only if these two counters are equal.
  const whole = header.readUInt32BE(24) === header.readUInt32BE(92) ? header.readUInt32BE(28) * pageBytes : 0;
  const isCut = size < whole && !hasLog(path);
  return isCut ? `it has ${size} of ${whole} bytes` : null;
}

/** Missing pages of the file may be in the log. */
function hasLog(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function beginningOf(path: string): { readonly size: number; readonly header: Buffer } {
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, HEADER_BYTES, 0);
    return { size: fstatSync(file).size, header };
  } finally {
    closeSync(file);
  }
}

/** The damage that SQLite finds; null if it finds none or cannot check. */
function contentFault(path: string): string | null {
  const asked = ask(path, (database) => {
    database.prepare("SELECT count(*) FROM sqlite_master").get();
    if (statSync(path).size > CHECKED_BYTES) return null;
    const found = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
    return found === "ok" || found === undefined ? null : String(found).replaceAll("\n", " ");
  });
  if (!(asked instanceof Error)) return asked;
  return "errcode" in asked && DAMAGED.includes(Number(asked.errcode) & 0xff) ? asked.message : null;
}

/** Whether the first tables of a boot exist. Also true if SQLite cannot check: the boot itself finds the reason. */
function hasTables(path: string): boolean {
  const asked = ask(path, (database) => {
    return database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").get() !== undefined;
  });
  return asked instanceof Error || asked;
}

/** Returns an error of SQLite as a value. */
function ask<T>(path: string, question: (database: DatabaseSync) => T): T | Error {
  let database: DatabaseSync | null = null;
  try {
    // Loaded only if there is a file to read: some releases of Node print a warning when it is loaded.
    const { DatabaseSync: Sqlite } = process.getBuiltinModule("node:sqlite");
    database = new Sqlite(path, { readOnly: true });
    return question(database);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR") return error;
    throw error;
  } finally {
    database?.close();
  }
}
