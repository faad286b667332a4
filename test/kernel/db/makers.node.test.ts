/** The migration that sets for each key which person created it. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { statementsIn } from "../../../src/local/migrate.ts";

const FOLDER = resolve(import.meta.dirname, "../../../migrations");
const MAKERS = "0007_makers.sql";

function run(database: DatabaseSync, file: string): void {
  for (const statement of statementsIn(readFileSync(join(FOLDER, file), "utf8"))) database.exec(statement);
}

test("an existing key gets the person at the beginning of its chain of keys as its creator", () => {
  const database = new DatabaseSync(":memory:");
  const earlier = readdirSync(FOLDER).filter((file) => file.endsWith(".sql") && file < MAKERS);
  for (const file of earlier.sort()) run(database, file);
  const columns = "id, org_id, person_id, created_by, name, hash, prefix, last4, scopes, created_at";
  const insert = database.prepare(`insert into api_keys (${columns}) values (?, ?, ?, ?, '', ?, '', '', '[]', 0)`);
  const rows = [
    ["key_ann", "org_1", "per_ann", "per_ann", null],
    ["key_program", "org_1", null, "key_ann", "per_ann"],
    ["key_of_program", "org_1", null, "key_program", "per_ann"],
    ["key_by_access", "org_1", null, "per_bob", "per_bob"],
    ["key_first", "org_1", null, "bootstrap", null],
    ["key_of_first", "org_1", null, "key_first", null],
    ["key_of_gone", "org_1", null, "key_gone", null],
    ["key_of_operator", "org_2", null, "key_program", null],
  ] as const;
  for (const [id, org, person, by] of rows) insert.run(id, org, person, by, id);
  run(database, MAKERS);
  const makers = database.prepare("select id, maker_id from api_keys order by rowid").all();
  expect(makers.map(({ id, maker_id }) => [id, maker_id])).toEqual(rows.map(([id, , , , maker]) => [id, maker]));
  database.close();
});
