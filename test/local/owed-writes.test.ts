/** What the boot writes while the disk is full. */
import { expect, test } from "vitest";
import { PendingWrites } from "../../src/local/workerd-watch.ts";

function onDisk() {
  const said: string[] = [];
  const written: string[] = [];
  const disk = { full: false };
  const put = (text: string) => () => {
    if (disk.full) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
    written.push(text);
  };
  const owed = new PendingWrites((line) => {
    said.push(line);
  });
  return { said, written, disk, put, owed };
}

test("a write without space is repeated later, only the last for each file, and reported once", () => {
  const { said, written, disk, put, owed } = onDisk();
  disk.full = true;
  expect(owed.write("lock", put("lock 1"))).toBe(false);
  owed.write("lock", put("lock 2"));
  owed.write("ready", put("ready 1"));
  owed.write("running", put("running 1"));
  owed.drop("ready");
  owed.retry();
  owed.hasRoom();
  expect(written).toEqual([]);
  disk.full = false;
  owed.retry();
  owed.hasRoom();
  owed.hasRoom();
  expect(written).toEqual(["lock 2", "running 1"]);
  expect(said).toEqual([
    "The disk is full: nothing is lost, and runs continue once there is space.",
    "The disk has space again.",
  ]);
});

test("any other error is thrown", () => {
  const { owed } = onDisk();
  const denied = () => {
    throw Object.assign(new Error("denied"), { code: "EACCES" });
  };
  expect(() => owed.write("lock", denied)).toThrow("denied");
});
