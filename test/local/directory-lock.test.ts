import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { DirectoryInUse, lockDirectory, lockFile } from "../../src/local/directory-lock.ts";
import { markOf, type ProcessMark } from "../../src/local/processes.ts";

// The package has no types: its only export is the path of the binary.
const workerdPath = z.string().parse(createRequire(import.meta.url)("workerd").default);

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** A process that waits for input that never arrives. */
async function start(command: string, args: string[]): Promise<ProcessMark> {
  const child = spawn(command, args, { stdio: ["pipe", "ignore", "ignore"] });
  children.push(child);
  await once(child, "spawn");
  const mark = markOf(child.pid ?? 0);
  if (mark === null) throw new Error(`${command} did not start`);
  return mark;
}

function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "rollcall-lock-"));
}

function leaveLock(directory: string, owner: ProcessMark, workerd: ProcessMark | null): void {
  writeFileSync(join(directory, "platform.lock"), JSON.stringify({ ...owner, workerd }));
}

const NOBODY: ProcessMark = { pid: 2 ** 22 + 1, started: "never" };

test("a directory can be locked once, and again after the release", async () => {
  const directory = newDirectory();
  const lock = await lockDirectory(directory);
  await expect(lockDirectory(directory)).rejects.toBeInstanceOf(DirectoryInUse);
  lock.release();
  (await lockDirectory(directory)).release();
  expect(readdirSync(directory)).toEqual([]);
});

test("the lock names this process and its workerd, and only the owner can read it", async () => {
  const directory = newDirectory();
  const lock = await lockDirectory(directory);
  lock.recordWorkerd({ pid: 7, started: "then" });
  const file = join(directory, "platform.lock");
  const text = JSON.parse(readFileSync(file, "utf8"));
  expect(text).toEqual({ ...markOf(process.pid), workerd: { pid: 7, started: "then" } });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a process that lost the directory to another leaves the other's lock alone", async () => {
  const directory = newDirectory();
  const lock = await lockDirectory(directory);
  rmSync(directory, { recursive: true });
  mkdirSync(directory);
  const other = await start("cat", []);
  leaveLock(directory, other, NOBODY);
  lock.recordWorkerd({ pid: 7, started: "then" });
  lock.release();
  const text = readFileSync(join(directory, "platform.lock"), "utf8");
  expect(JSON.parse(text)).toEqual({ ...other, workerd: NOBODY });
});

test("a lock whose process is gone is taken over", async () => {
  const directory = newDirectory();
  leaveLock(directory, NOBODY, null);
  const lock = await lockDirectory(directory);
  expect(lock.endedOrphan).toBeNull();
  await expect(lockDirectory(directory)).rejects.toThrow(`in use by process ${process.pid}`);
});

test("a lock whose pid now belongs to another process is taken over", async () => {
  const directory = newDirectory();
  leaveLock(directory, { pid: process.pid, started: "an hour ago" }, null);
  expect((await lockDirectory(directory)).endedOrphan).toBeNull();
});

test("the workerd of a dead owner is ended", async () => {
  const directory = newDirectory();
  const orphan = await start(workerdPath, ["serve", "--binary", "-"]);
  leaveLock(directory, NOBODY, orphan);
  const lock = await lockDirectory(directory);
  expect(lock.endedOrphan).toEqual(orphan);
  expect(markOf(orphan.pid)).toBeNull();
});

test("another process with the lost workerd's pid is left alone", async () => {
  const directory = newDirectory();
  const workerd = await start(workerdPath, ["serve", "--binary", "-"]);
  leaveLock(directory, NOBODY, { pid: workerd.pid, started: "an hour ago" });
  expect((await lockDirectory(directory)).endedOrphan).toBeNull();
  expect(markOf(workerd.pid)).toEqual(workerd);
});

test("a process that is not workerd is left alone", async () => {
  const directory = newDirectory();
  const cat = await start("cat", []);
  leaveLock(directory, NOBODY, cat);
  expect((await lockDirectory(directory)).endedOrphan).toBeNull();
  expect(markOf(cat.pid)).toEqual(cat);
});

const inUse = (pid: number) => new Error(`in use by ${pid}`);
const errorOf = (code: string) => Object.assign(new Error(`${code}: link`), { code });

test.each(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])(
  "a directory without hard links (%s) can be locked once, and again after the release",
  (code) => {
    const file = join(newDirectory(), "platform.lock");
    const lock = () =>
      lockFile(file, inUse, () => {
        throw errorOf(code);
      });
    const first = lock();
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...markOf(process.pid), workerd: null });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(lock).toThrow(`in use by ${process.pid}`);
    first.release();
    lock().release();
  },
);

test("any other error of the file system is thrown", () => {
  const file = join(newDirectory(), "platform.lock");
  const link = () => {
    throw errorOf("EIO");
  };
  expect(() => lockFile(file, inUse, link)).toThrow("EIO");
});

test("a lock that another process releases meanwhile is taken", () => {
  const file = join(newDirectory(), "platform.lock");
  let links = 0;
  const lock = lockFile(file, inUse, (draft, to) => {
    links += 1;
    if (links === 1) throw errorOf("EEXIST");
    linkSync(draft, to);
  });
  expect([lock.isLost(), links]).toEqual([false, 2]);
});

test("a lock that names no process is refused, with what to do", () => {
  const file = join(newDirectory(), "platform.lock");
  const refused = `${file} exists but names no process: remove it if no other process uses it`;
  writeFileSync(file, "");
  expect(() => lockFile(file, inUse)).toThrow(refused);
  rmSync(file);
  symlinkSync("/no/such/file", file);
  expect(() => lockFile(file, inUse)).toThrow(refused);
});
