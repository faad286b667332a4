/**
 * Damaged or missing files of a store are reported with the file, its class and what to do, before workerd is started.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { refuseDamage } from "../../src/local/store-damage.ts";
import { rollcall } from "../cli/run-rollcall.ts";
import { temporaryDirectory } from "../cli/temporary-directory.ts";
import { withMigrations } from "./with-migrations.ts";

const MIGRATIONS = readdirSync(join(import.meta.dirname, "../../migrations")).filter((name) => name.endsWith(".sql"));
const D1 = "store/d1/miniflare-D1DatabaseObject/0a1b.sqlite";
const INDEX = "store/do/-RunObject/metadata.sqlite";
const OBJECT = "store/do/-RunObject/12ab.sqlite";
const R2 = "store/r2/miniflare-R2BucketObject/metadata.sqlite";
const GARBAGE = Buffer.alloc(20_000, "not a database ");

/** A store like that of a platform that has played a run. */
function used(): string {
  const directory = withMigrations(temporaryDirectory(), MIGRATIONS);
  for (const file of [INDEX, OBJECT, R2]) {
    mkdirSync(join(directory, file, ".."), { recursive: true });
    const database = new DatabaseSync(join(directory, file));
    database.exec("create table rows (text); insert into rows values (hex(randomblob(50000)))");
    database.close();
  }
  return directory;
}

function saidOf(directory: string): string {
  const said: string[] = [];
  try {
    refuseDamage(directory, (line) => said.push(`said: ${line}`));
  } catch (error) {
    said.push(String(error));
  }
  return said.join("\n");
}

test("an intact store, a new one and a missing one are not refused", () => {
  expect(saidOf(used())).toBe("");
  expect(saidOf(temporaryDirectory())).toBe("");
  const fresh = temporaryDirectory();
  for (const file of [INDEX, D1, R2]) {
    mkdirSync(join(fresh, file, ".."), { recursive: true });
    writeFileSync(join(fresh, file), "");
  }
  expect(saidOf(fresh)).toBe("");
});

test.each([
  [D1, "the database D1"],
  [INDEX, "class RunObject"],
  [R2, "the index of R2"],
])("%s with garbage or cut short is refused with its file, its class and what to do", (file, name) => {
  const harms: Readonly<Record<string, (path: string) => void>> = {
    "it is not a SQLite database": (path) => writeFileSync(path, GARBAGE),
    " of \\d+ bytes": (path) => truncateSync(path, 4096 + 100),
  };
  for (const [why, harm] of Object.entries(harms)) {
    const directory = used();
    harm(join(directory, file));
    const said = saidOf(directory);
    expect(said).toContain(`${join(directory, file)} (${name}) is damaged: `);
    expect(said).toMatch(new RegExp(why));
    expect(said).toContain(`restore it from a copy, or move ${directory} away to start fresh`);
  }
});

test("a damaged object is reported, and nothing is refused", () => {
  const directory = used();
  writeFileSync(join(directory, OBJECT), GARBAGE);
  expect(saidOf(directory)).toBe(
    `said: ${join(directory, OBJECT)} (an object of class RunObject) is damaged: it is not a SQLite database. Only its own data is lost: restore it from a copy.`,
  );
});

test.each(["removed", "emptied"])("a database that was %s is not a fresh start if objects exist", (how) => {
  const directory = used();
  rmSync(join(directory, D1));
  if (how === "emptied") writeFileSync(join(directory, D1), "");
  expect(saidOf(directory)).toContain("(the database D1) is missing or has no tables, but its objects exist");
});

test.each([[["serve"]], [["run", "list"]]])("%j on a damaged store ends with 4 and one line", async (argv) => {
  const directory = used();
  writeFileSync(join(directory, D1), GARBAGE);
  const { code, stdout, stderr } = await rollcall([...argv, "--json"], { ROLLCALL_DIR: directory });
  expect([code, JSON.parse(stdout)]).toMatchObject([4, { error: { code: "directory_unusable" } }]);
  expect(stderr).toMatch(/^rollcall: .*0a1b\.sqlite \(the database D1\) is damaged: .*\n$/);
});

test.skipIf(!existsSync("/proc/self")).each(["/proc/x", "/proc/x/y"])(
  "a directory that cannot be created, %s, ends with 4 and one line",
  async (directory) => {
    const { code, stdout, stderr } = await rollcall(["run", "list", "--json"], { ROLLCALL_DIR: directory });
    expect([code, JSON.parse(stdout)]).toMatchObject([4, { error: { code: "directory_unusable" } }]);
    expect(stderr).toContain(`${directory} cannot be used (ENOENT`);
  },
);
