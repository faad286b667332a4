/** On `node:sqlite`, which workerd does not have; test/kernel/rollout/tool-sql.test.ts tests the platform's SQLite. */
import { DatabaseSync } from "node:sqlite";
import { textOf } from "rollcall";
import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import { rowAt } from "../../src/core/rollout/task.ts";
import { goldPolicy, loadEnvironment } from "./environment.ts";

const task = {
  question: "Add a second row.",
  answer: '[{"n":2}]',
  seed_sql: "create table a(id integer primary key, x); insert into a(x) values (1)",
  check_sql: "select count(*) as n from a",
};
const query = (...statements: string[]): Reply => ({
  tool_calls: statements.map((sql) => ({ name: "query", arguments: { sql } })),
});

async function play(replies: readonly Reply[], row: unknown = task, more = {}) {
  const report = await runRollout(await loadEnvironment(), {
    task: row,
    model: scripted(replies),
    openSqlite: () => new DatabaseSync(":memory:"),
    ...more,
  });
  const said = report.completion.filter(({ role }) => role === "tool").map(textOf);
  return { report, said };
}

test("every kind of generated task is solved by its own statements, and not by doing nothing", async () => {
  const environment = await loadEnvironment();
  for (let index = 0; index < 20; index += 1) {
    const row = rowAt(environment.dataset, index, 5);
    const { report, said } = await play(goldPolicy(row), row);
    expect(report, `${row["question"]} ${said}`).toMatchObject({ reward: 1, error: null });
    expect((await play(["done"], row)).report.reward).toBe(0);
  }
});

test("only the database's final state counts; restarts change nothing", async () => {
  const replies = [query("insert into a(x) values (2)", "select x from a"), "Done."];
  const { report, said } = await play(replies);
  expect(report).toMatchObject({ reward: 1, metrics: { final_state: 1, statements: 2 } });
  expect(said).toEqual(["[]", '[{"x":1},{"x":2}]']);
  expect((await play(replies, task, { restartAfterEachTurn: true })).report).toEqual(report);
});

test("a model that drops or empties the table has the wrong state: score 0, and no failure", async () => {
  const dropped = await play([query("drop table a"), "Done."]);
  expect(dropped.report).toMatchObject({
    reward: 0,
    error: null,
    state: { final_value: "no such table: a" },
  });
  expect((await play([query("delete from a"), "Done."])).report.reward).toBe(0);
});

test.each([
  ["attach database 'x' as y", "attach is not supported here"],
  ["PRAGMA writable_schema = on", "PRAGMA is not supported here"],
  ["select 1; drop table a", "one statement a call"],
  ["/* ; */ select ';' as s ; -- ;", '[{"s":";"}]'],
  ["create trigger t after insert on a begin insert into a(x) values (1); end", "[]"],
  [
    "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c",
    expect.stringContaining("may never end: add a limit"),
  ],
  [
    "with c(x) as (select 1 union all select x + 1 from c) insert into a(x) select x from c",
    expect.stringContaining("may never end"),
  ],
  ["select missing from a", "no such column: missing"],
  ["selec", 'near "selec": syntax error'],
])("%s is answered: %s", async (sql, answer) => {
  const { report, said } = await play([query(sql, "select count(*) as n from a"), "Done."]);
  expect(said).toEqual([answer, '[{"n":1}]']);
  expect(report.error).toBe(null);
});

test("a statement with too much work is refused before it runs, and the model gets the estimate", async () => {
  const values = Array.from({ length: 1000 }, (_, index) => `(${index})`).join(",");
  const filled = { ...task, seed_sql: `${task.seed_sql}; insert into a(x) values ${values}` };
  const { said } = await play(
    [
      query(
        "select count(*) as n from a p, a q, a r",
        "with m as materialized (select p.x from a p, a q) select count(*) from m s, m t",
        "select sum(length(hex(randomblob(900000)))) from a",
        "select count(*) as n from a p, a q",
        "select count(*) as n from a p join a q on q.id = p.id",
        "select count(replace(x, '1', '2')) as n from a",
        "replace into a(id, x) values (1, hex('a'))",
      ),
      "Done.",
    ],
    filled,
  );
  const refused = expect.stringMatching(
    /^too much work: one call would take about \S+e\+\d+ steps, and the limit is 3\.0e\+7: read fewer rows, join fewer/,
  );
  expect(said).toEqual([refused, refused, refused, '[{"n":1002001}]', '[{"n":1001}]', '[{"n":1001}]', "[]"]);
});

const endless = "with recursive c(x) as (select 1 union all select x + 1 from c)";

test.each([
  ["seed_sql", { seed_sql: `${task.seed_sql}; ${endless} select count(*) from c` }],
  ["check_sql", { check_sql: `${endless} select count(*) from c` }],
])("a row whose %s is too much work fails with that name, and does not score 0", async (field, more) => {
  const { report } = await play(["Done."], { ...task, ...more });
  expect(report).toMatchObject({ reward: null, error: { error: "EnvError" } });
  expect(report.error?.message).toMatch(new RegExp(`^${field}: the statement may never end`));
});

test("a check that becomes too much work because of the model is a wrong state; a check of its tables runs at the end", async () => {
  const heavy = { ...task, check_sql: "select count(*) as n from a p, a q, a r" };
  const more = query(
    "insert into a(x) with recursive c(x) as (select 1 union all select x + 1 from c limit 2000) select x from c",
  );
  const { report } = await play([more, "Done."], heavy);
  expect(report).toMatchObject({
    reward: 0,
    error: null,
    state: { final_value: expect.stringMatching(/^too much work/) },
  });
  const made = { ...task, check_sql: "select count(*) as n from b", answer: '[{"n":0}]' };
  expect((await play([query("create table b(x)"), "Done."], made)).report.reward).toBe(1);
});

test("twenty statements are the limit: the next one ends the rollout", async () => {
  const many = Array.from({ length: 21 }, () => "select 1 as one");
  const { report } = await play([query(...many), "Done?"]);
  expect(report).toMatchObject({ stop_condition: "too_many_statements", reward: 0 });
});

test("uploaded rows are used unchanged, and a judge is called only if configured", async () => {
  const environment = await loadEnvironment({ rows: "uploaded" });
  expect(() => rowAt(environment.dataset, 0, 0)).toThrow();
  const judged = await loadEnvironment({ explained: true });
  expect([environment.rubric.judges, judged.rubric.judges]).toEqual([[], ["default"]]);
});
