/**
 * Damage of the files of a store, found before workerd is started on it: workerd then ends, or takes an empty database for
 * a new one, and says nothing that a person can act on.
 *
 * What everything needs is refused: D1, R2, and the index that each class of objects has. One object that is damaged is
 * only said, since everything else works without it. Whether a page far inside of a large file is well is not looked at.
 */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, sep } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { DirectoryUnusable } from "./directory-unusable.ts";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
/** Of a file with more, only the schema is read. */
const CHECKED_BYTES = 256 * 1024 ** 2;
/** SQLITE_CORRUPT and SQLITE_NOTADB, without their extensions. */
const DAMAGED = [11, 26];
const INDEX = "metadata.sqlite";

/** Throws DirectoryUnusable. `say` is told of objects that will not open. */
export function refuseDamage(directory: string, say: (line: string) => void): void {
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
    say(
      `${path} (an object of ${nameOf(file)}) is damaged: ${why}. Only its own data is lost: restore it from a copy.`,
    );
  }
  const isThere = files.some((file) => file.startsWith(`d1${sep}`) && hasTables(join(store, file)));
  if (isThere || !files.some(isObject)) return;
  const gone = "is missing or has no tables, but its objects exist";
  throw damaged(directory, `${join(store, "d1")} (the database D1) ${gone}`);
}

/** Their paths below the store, which is `kind/class/file`. */
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

/** An object of the Worker's own, and not what Miniflare keeps. */
function isObject(file: string): boolean {
  return file.startsWith(`do${sep}`) && basename(file) !== INDEX;
}

function nameOf(file: string): string {
  const [kind = "", folder = ""] = file.split(sep);
  if (kind === "do") return `class ${folder.replace(/^.*-/, "")}`;
  return { d1: "the database D1", r2: "the index of R2" }[kind] ?? kind;
}

/** What is wrong with the first bytes of a database, or its length; null: nothing. */
function headerFault(path: string): string | null {
  const { size, header } = beginningOf(path);
  // A new one: a kill may leave it so.
  if (size === 0) return null;
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return "it is not a SQLite database";
  const stored = header.readUInt16BE(16);
  const pageBytes = stored === 1 ? 65_536 : stored;
  // The count stands for what was written with the same change.
  const whole = header.readUInt32BE(24) === header.readUInt32BE(92) ? header.readUInt32BE(28) * pageBytes : 0;
  const isCut = size < whole && !hasLog(path);
  return isCut ? `it has ${size} of ${whole} bytes` : null;
}

/** Pages that its file lacks may stand there. */
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

/** What SQLite finds wrong with it; null where it finds nothing, or cannot look. */
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

/** Those that a boot makes first. True too where SQLite cannot look: the boot finds by itself why. */
function hasTables(path: string): boolean {
  const asked = ask(path, (database) => {
    return database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'd1_migrations'").get() !== undefined;
  });
  return asked instanceof Error || asked;
}

/** An error of SQLite's is a value. */
function ask<T>(path: string, question: (database: DatabaseSync) => T): T | Error {
  let database: DatabaseSync | null = null;
  try {
    // Loaded where there is a file to read: some releases of Node print a warning when it is.
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
