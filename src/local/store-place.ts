/**
 * Where a state directory has its store: on disk inside the directory, or in memory behind a link. A sync to disk takes
 * ten times as long as one to memory, and a training makes hundreds a second.
 *
 * Invariants. A store stays where it is unless it is asked to move to disk. A store in memory names its directory;
 * stores without a linking directory are removed. No store is created in memory if one exists on disk. The caller must
 * hold the directory's lock.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { MEMORY, roomyMemory } from "./state-directory.ts";

export interface StorePlace {
  readonly path: string;
  /** Its folder in memory, which is lost when the machine restarts; null on disk. */
  readonly memory: string | null;
  /** There was a store in memory, and it is gone. */
  readonly lost: boolean;
}

const TMPFS = 0x01021994;
const PREFIX = "rollcall-store-";
/** A file in a store's folder in memory, with the path of its directory. */
const OWNER = "directory";

/**
 * `wanted`: "memory" only applies if there is no store yet; "disk" also moves a store. Absent: it stays where it is.
 */
export function placeStore(directory: string, wanted?: "disk" | "memory"): StorePlace {
  const path = join(directory, "store");
  const linked = linkedFrom(path);
  const there = linked !== null && isOurs(linked);
  // The directory may have been moved.
  if (there) writeFileSync(join(dirname(linked), OWNER), directory);
  removeForgotten();
  if (there) {
    if (wanted !== "disk") return { path, memory: dirname(linked), lost: false };
    moveToDisk(path, linked);
    return { path, memory: null, lost: false };
  }
  const lost = linked !== null;
  if (lost) rmSync(path);
  const memory = wanted === "memory" && !existsSync(path) ? memoryFor(directory) : null;
  if (memory !== null) linkToMemory(path, directory, memory);
  return { path, memory, lost };
}

/** A new folder; null if memory has too little space, or the directory itself is in memory. */
function memoryFor(directory: string): string | null {
  const roomy = roomyMemory();
  if (roomy === null || statfsSync(directory).type === TMPFS) return null;
  return mkdtempSync(join(roomy, PREFIX));
}

/** The owner file is written last: a folder that is not linked yet must not look abandoned. */
function linkToMemory(path: string, directory: string, memory: string): void {
  const store = join(memory, "store");
  mkdirSync(store);
  symlinkSync(store, path);
  writeFileSync(join(memory, OWNER), directory);
}

function moveToDisk(path: string, linked: string): void {
  const draft = `${path}.new`;
  rmSync(draft, { recursive: true, force: true });
  cpSync(linked, draft, { recursive: true });
  rmSync(path);
  renameSync(draft, path);
  removeForgotten();
}

/** Removes stores whose directory was deleted or now has its store elsewhere. */
function removeForgotten(): void {
  if (!existsSync(MEMORY)) return;
  for (const name of readdirSync(MEMORY).filter((it) => it.startsWith(PREFIX))) {
    const folder = join(MEMORY, name);
    const owner = isOurs(folder) ? ownerOf(folder) : null;
    if (owner === null || linkedFrom(join(owner, "store")) === join(folder, "store")) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}

function ownerOf(folder: string): string | null {
  const file = join(folder, OWNER);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/** The target of the link; null if it is not a link or does not exist. */
function linkedFrom(path: string): string | null {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isSymbolicLink() === true ? readlinkSync(path) : null;
}

/** A folder with this name that another user created is not ours. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}
