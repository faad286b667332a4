import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unstable_splitSqlQuery } from "wrangler";
import { statementsIn } from "../../src/local/migrate.ts";

const FOLDER = join(import.meta.dirname, "../../migrations");

test("every migration comes apart into the statements that a deployment runs", () => {
  const migrations = readdirSync(FOLDER).filter((name) => name.endsWith(".sql"));
  expect(migrations.length).toBeGreaterThan(4);
  for (const name of migrations) {
    const text = readFileSync(join(FOLDER, name), "utf8");
    const deployed = unstable_splitSqlQuery(text).map(bare);
    expect(statementsIn(text).map(bare), name).toEqual(deployed.filter((it) => it !== ""));
  }
});

/** Without what says nothing: comments, blanks, the semicolon at the end. */
function bare(statement: string): string {
  const lines = statement.split("\n").filter((line) => !line.trim().startsWith("--"));
  return lines.join(" ").replace(/\s+/g, " ").trim().replace(/;$/, "");
}
