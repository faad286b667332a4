import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unstable_splitSqlQuery } from "wrangler";
import { DirectoryUnusable } from "../../src/local/directory-unusable.ts";
import { refuseForeignData, statementsIn } from "../../src/local/migrate.ts";
import { temporaryDirectory } from "../cli/temporary-directory.ts";
import { withMigrations } from "./with-migrations.ts";

const FOLDER = join(import.meta.dirname, "../../migrations");

test("every migration splits into the statements that a deployment runs", () => {
  const migrations = readdirSync(FOLDER).filter((name) => name.endsWith(".sql"));
  expect(migrations.length).toBeGreaterThan(0);
  for (const name of migrations) {
    const text = readFileSync(join(FOLDER, name), "utf8");
    const deployed = unstable_splitSqlQuery(text).map(bare);
    expect(statementsIn(text).map(bare), name).toEqual(deployed.filter((it) => it !== ""));
  }
});

test("only a directory whose database has a migration that this release lacks is refused", () => {
  const refused = withMigrations(temporaryDirectory(), ["0000_initial.sql", "0001_more.sql"]);
  expect(() => refuseForeignData(refused, FOLDER)).toThrow(DirectoryUnusable);
  expect(() => refuseForeignData(refused, FOLDER)).toThrow(
    `${refused} was written by another release of Rollcall, whose data this release cannot read: move it away, or set ROLLCALL_DIR to another directory`,
  );
  const own = readdirSync(FOLDER).filter((name) => name.endsWith(".sql"));
  for (const names of [null, [], own]) {
    const directory = temporaryDirectory();
    if (names !== null) withMigrations(directory, names);
    expect(() => refuseForeignData(directory, FOLDER)).not.toThrow();
  }
});

/** Without comments, blanks and the semicolon at the end. */
function bare(statement: string): string {
  const lines = statement.split("\n").filter((line) => !line.trim().startsWith("--"));
  return lines.join(" ").replace(/\s+/g, " ").trim().replace(/;$/, "");
}
