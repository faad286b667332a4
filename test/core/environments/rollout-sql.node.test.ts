import { DatabaseSync } from "node:sqlite";
import { dataset, defineEnvironment, inject, type Sql, StatefulToolEnv, tool } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { SqlWorkError } from "../../../src/contract/errors.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import {
  NO_JOURNAL,
  RolloutSql,
  type SqlEntry,
  type SqlJournal,
  type SqlValue,
} from "../../../src/core/environments/rollout-sql.ts";
import { databaseOf } from "../../../src/core/sql/database.ts";

function opened(journal: SqlJournal = NO_JOURNAL) {
  const sql = new RolloutSql(databaseOf(new DatabaseSync(":memory:")), journal);
  let call = 0;
  const exec = (query: string, ...params: SqlValue[]) => {
    call += 1;
    return sql.exec({ effect: "reply:1", call: call - 1 }, query, params);
  };
  return { sql, exec };
}

class Kept implements SqlJournal {
  readonly entries: SqlEntry[] = [];
  find({ effect, call }: { effect: string; call: number }) {
    return this.entries.find((known) => known.effect === effect && known.call === call) ?? null;
  }
  add(entry: SqlEntry) {
    this.entries.push(entry);
  }
}

test("a call runs all its statements, binds parameters in the last one and returns its rows", () => {
  const { exec } = opened();
  const rows = exec(
    "create table a(x, y); insert into a values (1, 'one; two'), (2, null); select * from a where x = ?",
    1,
  );
  expect(rows).toEqual([{ x: 1, y: "one; two" }]);
  expect(exec("insert into a values (3, 1.5) returning x, y")).toEqual([{ x: 3, y: 1.5 }]);
  expect(exec("select max(9007199254740993) as big")).toEqual([{ big: 9007199254740992 }]);
});

test("a failing call changes nothing, and has SQLite's error message", () => {
  const { exec } = opened();
  exec("create table a(x)");
  expect(() => exec("insert into a values (1); insert into b values (1)")).toThrow(/^no such table: b$/);
  expect(exec("select count(*) as n from a")).toEqual([{ n: 0 }]);
  expect(() => exec("")).toThrow(/statement/);
});

test("a repeated call returns the first result, including errors, and is not applied again", () => {
  const journal = new Kept();
  const { sql, exec } = opened(journal);
  exec("create table a(x)");
  exec("insert into a values (1)");
  expect(() => exec("insert into b values (1)")).toThrow("no such table: b");
  exec("create table b(x)");
  const before = journal.entries.length;
  const again = (call: number, query: string) => sql.exec({ effect: "reply:1", call }, query, []);
  expect(again(1, "insert into a values (1)")).toEqual([]);
  // The statement would succeed now.
  expect(() => again(2, "insert into b values (1)")).toThrow("no such table: b");
  expect(journal.entries.length).toBe(before);
  expect(exec("select (select count(*) from a) as a, (select count(*) from b) as b")).toEqual([{ a: 1, b: 0 }]);
  expect(() => again(1, "insert into a values (2)")).toThrow(/differs after a restart/);
});

test("statements about the connection are refused, but triggers are not", () => {
  const { exec } = opened();
  for (const query of [
    "begin",
    "select 1; COMMIT",
    "pragma table_list",
    "explain query plan /* of */ pragma table_list",
    "attach 'x' as y",
  ]) {
    expect(() => exec(query), query).toThrow(/is not supported here/);
  }
  exec("create table a(x); create table log(x)");
  exec("create trigger t after insert on a begin insert into log values (new.x); end");
  exec("insert into a values (5)");
  expect(exec("select x from log")).toEqual([{ x: 5 }]);
});

test("results are JSON within the limits; beyond them the whole call is undone", () => {
  const { exec } = opened();
  exec("create table a(x)");
  const numbers = "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select x from c";
  expect(exec(numbers, LIMITS.sqlRows).length).toBe(LIMITS.sqlRows);
  const more = LIMITS.sqlRows + 1;
  expect(() => exec(`insert into a ${numbers} returning x`, more)).toThrow(/add a limit/);
  expect(exec("select count(*) as n from a")).toEqual([{ n: 0 }]);
  expect(() => exec(numbers, 1e5)).toThrow(/over 1000 rows/);
  expect(() => exec(numbers, 1e9)).toThrow(/too much work/);
  expect(() => exec("select zeroblob(1) as b")).toThrow("column b is a blob: select hex(…) of it");
  expect(() => exec("select 1e400 as x")).toThrow("column x is Infinity");
  expect(() => exec(`select hex(zeroblob(${LIMITS.sqlResultBytes})) as x`)).toThrow(/as JSON/);
  expect(() => exec(`select ${" ".repeat(LIMITS.sqlQueryBytes)} 1`)).toThrow(/the query is over/);
  expect(() => exec("select ?", "x".repeat(LIMITS.sqlParameterBytes))).toThrow(/parameters are/);
  const many = opened();
  for (let call = 0; call < LIMITS.sqlCallsPerHook; call += 1) many.exec("select 1 as one");
  expect(() => many.exec("select 1 as one")).toThrow(/more than 1000 sql calls/);
});

test("the calls of one hook share a work budget; another hook starts a new one, and a restart continues it", () => {
  const journal = new Kept();
  const count =
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 200000) select count(*) as n from c";
  const first = opened(journal);
  let calls = 0;
  const spend = () => {
    for (; calls < 60; calls += 1) first.exec(count);
  };
  expect(spend).toThrow(/the sql calls of one hook would take about \S+ steps, and the limit is 1\.0e\+8/);
  expect(calls).toBeGreaterThan(1);
  expect(() => first.exec(count)).toThrow(SqlWorkError);
  expect(() => first.exec("pragma user_version")).toThrow("pragma is not supported here");
  const again = opened(journal);
  for (let call = 0; call < calls; call += 1) expect(again.exec(count)).toEqual([{ n: 200_000 }]);
  expect(() => again.exec(count)).toThrow(SqlWorkError);
  expect(() => again.exec(count)).toThrow(SqlWorkError);
  expect(() => again.exec("pragma user_version")).toThrow("pragma is not supported here");
  expect(() => again.exec(count)).toThrow(SqlWorkError);
  const other = { effect: "reply:2", call: 0 };
  expect(again.sql.exec(other, count, [])).toEqual([{ n: 200_000 }]);
});

const query = tool({
  name: "query",
  description: "Runs one SQL statement.",
  parameters: z.object({ sql: z.string() }),
  hidden: { db: inject<Sql>() },
  run: ({ sql, db }) => db.exec(sql),
});
const Task = z.object({ question: z.string(), seed: z.string(), check: z.string() });
const desk = defineEnvironment({
  args: z.strictObject({}),
  needs: ["sql"],
  build: () =>
    new StatefulToolEnv({
      dataset: dataset(Task, "uploaded"),
      setupState: async ({ task }, { sql }) => {
        await sql.exec(task.seed);
        return { final: "" };
      },
      openLive: (_state, { sql }) => ({ db: sql }),
      tools: [query],
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, db: state.live.db }),
      postRollout: async (state) => {
        state.final = JSON.stringify(await state.live.db.exec(state.task.check));
      },
      rubric: { rewards: { moved: ({ state }) => state.final === '[{"n":2}]' } },
    }),
});
const task = {
  question: "Add a second row.",
  seed: "create table a(x); insert into a values (1)",
  check: "select count(*) as n from a",
};

test("an environment with sql can be played in a test, and restarts keep its tables", async () => {
  const environment = await desk();
  const replies = [
    { tool_calls: [{ name: "query", arguments: { sql: "insert into a values (2)" } }] },
    { tool_calls: [{ name: "query", arguments: { sql: "select missing" } }] },
    "Done.",
  ];
  const play = (restartAfterEachTurn: boolean) =>
    runRollout(environment, {
      task,
      model: scripted(replies),
      openSqlite: () => new DatabaseSync(":memory:"),
      restartAfterEachTurn,
    });
  const report = await play(false);
  expect(report).toMatchObject({ reward: 1, error: null });
  expect(report.completion.filter(({ role }) => role === "tool").map((m) => m.content)).toEqual([
    [],
    "no such column: missing",
  ]);
  expect(await play(true)).toEqual(report);
});

test("without a database the setup fails with how to provide one", async () => {
  const report = await runRollout(await desk(), { task, model: scripted([]) });
  expect(report.error?.message).toBe("sql is declared but not available here: give runRollout openSqlite");
});
