import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { MEMORY, roomyMemory } from "../../src/local/state-directory.ts";
import { placeStore } from "../../src/local/store-place.ts";

/** Whether this machine has both a disk and an in-memory file system. */
const CHOICE = roomyMemory() !== null && statfsSync(tmpdir()).type !== statfsSync(MEMORY).type;

const made: string[] = [];
afterEach(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
  // Removes the in-memory stores of deleted directories.
  if (CHOICE) placeStore(mkdtempSync(join(tmpdir(), "rollcall-place-")));
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "rollcall-place-"));
  made.push(directory);
  return directory;
}

/** A store in memory with a file in it. Returns its folder. */
function inMemory(directory: string): string {
  const { path, memory } = placeStore(directory, "memory");
  if (memory === null) throw new Error("it is not in memory");
  writeFileSync(join(path, "kept"), "a row");
  return memory;
}

test("by default the store is on disk, in its directory", () => {
  const directory = newDirectory();
  const place = { path: join(directory, "store"), memory: null, lost: false };
  expect(placeStore(directory)).toEqual(place);
});

test.runIf(CHOICE)("a store in memory stays there, whoever opens the directory next", () => {
  const directory = newDirectory();
  const memory = inMemory(directory);
  expect(memory.startsWith(MEMORY)).toBe(true);
  for (const wanted of ["memory", undefined] as const) {
    const again = placeStore(directory, wanted);
    expect(again).toEqual({ path: join(directory, "store"), memory, lost: false });
    expect(readFileSync(join(again.path, "kept"), "utf8")).toBe("a row");
  }
});

test.runIf(CHOICE)("asked to be on disk, a store moves there and leaves nothing in memory", () => {
  const directory = newDirectory();
  const memory = inMemory(directory);
  expect(placeStore(directory, "disk")).toMatchObject({ memory: null, lost: false });
  expect(readFileSync(join(directory, "store", "kept"), "utf8")).toBe("a row");
  expect(existsSync(memory)).toBe(false);
});

test("a store on disk stays there", () => {
  const directory = newDirectory();
  mkdirSync(join(directory, "store"));
  expect(placeStore(directory, "memory")).toMatchObject({ memory: null, lost: false });
});

test.runIf(CHOICE)("after a restart of the machine the loss of the store is reported, once", () => {
  const directory = newDirectory();
  rmSync(inMemory(directory), { recursive: true });
  expect(placeStore(directory)).toMatchObject({ memory: null, lost: true });
  expect(placeStore(directory)).toMatchObject({ memory: null, lost: false });
});

test.runIf(CHOICE)("the in-memory store of a deleted directory is removed; that of a moved directory stays", () => {
  const [deleted, moved] = [newDirectory(), newDirectory()];
  const [gone, stays] = [inMemory(deleted), inMemory(moved)];
  rmSync(deleted, { recursive: true });
  const elsewhere = `${moved}-elsewhere`;
  made.push(elsewhere);
  renameSync(moved, elsewhere);
  expect(placeStore(elsewhere)).toMatchObject({ memory: stays, lost: false });
  placeStore(newDirectory());
  expect([existsSync(gone), existsSync(stays)]).toEqual([false, true]);
});
