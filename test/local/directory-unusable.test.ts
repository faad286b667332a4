/** An unusable state directory is reported in one line, by every command that uses it. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DirectoryUnusable, directoryFault } from "../../src/local/directory-unusable.ts";
import { rollcall } from "../cli/run-rollcall.ts";
import { temporaryDirectory } from "../cli/temporary-directory.ts";
import { withMigrations } from "./with-migrations.ts";

test.each([[["run", "list"]], [["serve"]], [["eval", "calculator", "-n", "1"]]])(
  "%j on a path that is not a directory ends with 4 and one line",
  async (argv) => {
    const file = join(temporaryDirectory(), "file");
    writeFileSync(file, "");
    const { code, stdout, stderr } = await rollcall([...argv, "--json"], { ROLLCALL_DIR: file });
    expect([code, JSON.parse(stdout)]).toMatchObject([4, { error: { code: "directory_unusable" } }]);
    expect(stderr).toMatch(/^rollcall: .*cannot be used .*set ROLLCALL_DIR to another directory\n$/);
  },
);

test("a directory of another release ends with 4 and one line, and is not changed", async () => {
  const directory = withMigrations(temporaryDirectory(), ["0000_initial.sql"]);
  // SQLite creates scratch files next to a database that it reads.
  const files = () =>
    readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((it) => !/-(shm|wal)$/.test(it));
  const before = files();
  const { code, stdout, stderr } = await rollcall(["run", "list", "--json"], { ROLLCALL_DIR: directory });
  expect([code, JSON.parse(stdout)]).toMatchObject([4, { error: { code: "directory_unusable" } }]);
  expect(stderr).toMatch(
    /^rollcall: .* was written by another release of Rollcall.*: move it away, or set ROLLCALL_DIR/,
  );
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(files()).toEqual(before);
});

test.skipIf(!existsSync("/dev/full"))("a full disk is reported as such, and not by its error code", () => {
  const directory = temporaryDirectory();
  const fault = directoryFault(
    failureOf(() => writeFileSync("/dev/full", "x")),
    directory,
  );
  expect(fault).toBeInstanceOf(DirectoryUnusable);
  expect(fault).toMatchObject({
    code: "storage_full",
    message: `no space is left on the disk of ${directory}: free some, or set ROLLCALL_DIR to another directory`,
  });
});

test("an error that the directory did not cause stays the same", () => {
  const directory = temporaryDirectory();
  const elsewhere = failureOf(() => writeFileSync(join(import.meta.dirname, "no/such"), ""));
  expect(directoryFault(elsewhere, directory)).toBe(elsewhere);
  const plain = new Error("workerd did not start");
  expect(directoryFault(plain, directory)).toBe(plain);
});

function failureOf(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
