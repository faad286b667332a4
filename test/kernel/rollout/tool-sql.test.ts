/** environments/tool-sql on the whole platform, with a hostile model. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { SqlPlace } from "../../../src/core/environments/rollout-sql.ts";
import type { RolloutSqlRpc } from "../../../src/kernel/messages/rpc.ts";
import { sqlOf } from "../../../src/kernel/rollout/sql-object.ts";
import { openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { questionScript, script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const NAMES = '[{"name":"Ada"},{"name":"Bo"}]';

const HARM: readonly (readonly [string, RegExp])[] = [
  ["drop table customers", /^\[\]$/],
  ["attach database '/tmp/x' as x", /^attach is not supported here$/],
  ["pragma writable_schema = on", /^pragma is not supported here$/],
  ["explain pragma writable_schema = on", /^pragma is not supported here$/],
  ["with recursive c(x) as (select 1 union all select x + 1 from c) select x from c", /may never end/],
  ["create table big as select a.id from orders a, orders b, orders c, orders d, orders e", /too much work/],
  ["create table big as select a.id from orders a, orders b", /^\[\]$/],
  ["insert into big select a.id from big a, big b", /too much work/],
  ["select * from big", /^the query returns over 1000 rows: add a limit$/],
  ["select hex(zeroblob(200000)) as x", /^the rows are over \d+ bytes as JSON$/],
  ["drop table _cf_KV", /./],
  ["update facts set text = ''", /^no such table: facts$/],
  ["select count(*) as left from customers", /^no such table: customers$/],
];

const seed_sql =
  "create table customers(id integer primary key, name); insert into customers(name) values ('Ada'), ('Bo'); " +
  `create table orders(id integer primary key, x); insert into orders(x) values ${"(1), ".repeat(99)}(1)`;

/** A row whose model sends these statements in its one tool turn. */
function row(statements: readonly string[]) {
  const calls = statements.map((sql, index) => ({
    id: `call_${index}`,
    name: "query",
    arguments: { sql },
  }));
  const question = questionScript([{ tool_calls: calls }, "Done."]);
  return { question, seed_sql, check_sql: "select name from customers", answer: NAMES };
}

async function answered(id: string) {
  const rollout = await platform.rollout(id);
  const replies = rollout.turns.flatMap(({ prompt }) => prompt.append);
  const said = replies.filter((message) => message["role"] === "tool");
  return { rollout, said: said.map((message) => message["content"]) };
}

test("a model that drops, attaches, and computes without end spoils only its own answer", async () => {
  const look = "select count(*) as n from customers";
  const run = await platform.finish({
    environment: "tool-sql",
    environment_args: { rows: "uploaded" },
    dataset: [row(HARM.map(([sql]) => sql)), row([look])],
    model: script([]),
  });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 2, failed: {} } });
  const harmful = await answered(rolloutAt(run.id, 0));
  expect(harmful.rollout).toMatchObject({
    outcome: "scored",
    reward: 0,
    state: { final_value: "no such table: customers", statements: HARM.length },
    cleanup_errors: [],
  });
  for (const [index, [sql, answer]] of HARM.entries()) {
    expect(harmful.said[index], sql).toMatch(answer);
  }
  const harmless = await answered(rolloutAt(run.id, 1));
  expect(harmless).toMatchObject({ said: ['[{"n":2}]'], rollout: { reward: 1 } });
});

test("a row whose SQL counts without end fails with the name of the field, and the other rollout is scored", async () => {
  const endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c";
  const look = row(["select count(*) as n from customers"]);
  const run = await platform.finish({
    environment: "tool-sql",
    environment_args: { rows: "uploaded" },
    dataset: [{ ...look, seed_sql: `${seed_sql}; ${endless}` }, { ...look, check_sql: endless }, look],
    model: script([]),
  });
  expect(run).toMatchObject({
    counts: { scored: 1, failed: { environment: 2 } },
  });
  const [seed, check] = [await answered(rolloutAt(run.id, 0)), await answered(rolloutAt(run.id, 1))];
  expect(seed.rollout.error?.message).toMatch(/^seed_sql: the statement may never end/);
  expect(check.rollout.error?.message).toMatch(/^check_sql: the statement may never end/);
});

test("an SQL call that meets temporary faults below the platform is made again, and not for other faults", async () => {
  const overloaded = new Error("Durable Object is overloaded. Too many requests queued.");
  const faults = [overloaded, overloaded];
  const places: SqlPlace[] = [];
  const database: RolloutSqlRpc = {
    async exec(_, place) {
      places.push(place);
      const fault = faults.shift();
      if (fault !== undefined) throw fault;
      return { outcome: { rows: [{ n: 1 }] }, waited_ms: 0 };
    },
  };
  const ctx = { facets: { get: () => database }, exports: {} } as unknown as DurableObjectState;
  const spec = { group: 0, slot: 0, attempt: 0, rollout_id: "ro_sql", scope: platform.scope };
  const waits: Promise<unknown>[] = [];
  const untimed = async <T>(wait: Promise<T>) => {
    waits.push(wait);
    return await wait;
  };
  const store = { writes: () => 1, noteSql: () => undefined };
  const sql = sqlOf(ctx, env, spec, store, { excuse: () => undefined, untimed });
  const place = { effect: "setup:0", call: 0 };
  expect(await sql.exec(place, "select 1 as n", [])).toEqual([{ n: 1 }]);
  expect(places).toEqual([place, place, place]);
  expect(waits).toHaveLength(2);
  faults.push(new Error("it is broken"));
  await expect(sql.exec(place, "select 1 as n", [])).rejects.toThrow("the rollout's database did not answer");
  expect(places).toHaveLength(4);
});
