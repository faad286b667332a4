import { beforeAll, expect, test } from "vitest";
import { NO_JOURNAL, RolloutSql, type SqlValue } from "../../src/core/environments/rollout-sql.ts";
import { LIMITS } from "../../src/core/limits.ts";
import { rolloutDatabase } from "../../src/runtime/rollout-database.ts";
import { registerDesk } from "./desk.ts";
import { type Door, openPlatform, rolloutAt } from "./platform.ts";
import { script } from "./script.ts";

let platform: Door;
let id: string;
beforeAll(async () => {
  registerDesk();
  platform = await openPlatform();
  const run = await platform.finish({
    environment: "desk",
    model: script(["Done."]),
    num_examples: 1,
  });
  id = rolloutAt(run.id);
});

type Exec = (query: string, ...params: SqlValue[]) => readonly object[];

function inDatabase<T>(use: (exec: Exec, state: DurableObjectState) => T): Promise<T> {
  return platform.inRollout(id, (_, state) => {
    const sql = new RolloutSql(rolloutDatabase(state.storage), NO_JOURNAL);
    return use((query, ...params) => sql.exec({ effect: "test", call: 0 }, query, params), state);
  });
}

test("an environment that needs sql has its own tables in its rollout's object", async () => {
  expect(await platform.rollout(id)).toMatchObject({
    outcome: "scored",
    state: { notes: "first" },
  });
  expect(await inDatabase((exec) => exec("select text from notes"))).toEqual([{ text: "first" }]);
});

test("a call is all or nothing there too, and SQLite's words are the same", async () => {
  await inDatabase((exec) => {
    exec("create table a(x)");
    expect(() => exec("insert into a values (1); insert into b values (1)")).toThrow(
      /^no such table: b$/,
    );
    expect(exec("select count(*) as n from a")).toEqual([{ n: 0 }]);
    expect(exec("insert into a values (?), (?) returning x", 1, "two")).toEqual([
      { x: 1 },
      { x: "two" },
    ]);
    expect(() => exec("select zeroblob(1) as b")).toThrow(/column b is a blob/);
  });
});

test("too many rows end their call and leave the object fit to go on", async () => {
  await inDatabase((exec, { storage }) => {
    const numbers =
      "with recursive c(x) as (select 1 union all select x + 1 from c where x <= ?) select x from c";
    exec("create table many(x)");
    expect(() => exec(`insert into many ${numbers} returning x`, LIMITS.sqlRows)).toThrow(
      /add a limit/,
    );
    expect(exec("select count(*) as n from many")).toEqual([{ n: 0 }]);
    expect(() => exec(numbers, 1e12)).toThrow(/add a limit/);
    exec("drop table many");
    storage.sql.exec("create table still_writes(x)");
  });
});

test("the platform's own table is neither read nor written", async () => {
  await inDatabase((exec) => {
    expect(() => exec("select * from 'facts'")).toThrow(/is the platform's/);
    expect(() => exec("create virtual table f using fts5(text, content='facts')")).toThrow();
  });
});
