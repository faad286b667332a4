/** The database of a rollout in workerd: a facet of its object. A query has full access to it and to nothing else. */
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { SqlOutcome, SqlPlace, SqlValue } from "../../../src/core/environments/rollout-sql.ts";
import { PASS_STEPS, PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import type { RolloutSqlRpc } from "../../../src/kernel/messages/rpc.ts";
import { HOSTILE } from "../../core/sql/hostile.ts";
import { registerDesk } from "../desk.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { script } from "../script.ts";

let platform: TestApi;
let run: string;
let id: string;
beforeAll(async () => {
  registerDesk();
  platform = await openPlatform();
  const model = script([{ fault: { kind: "hang" } }]);
  // It stays under way during the tests.
  run = (await platform.start({ environment: "desk", model, num_examples: 1 })).id;
  id = rolloutAt(run);
  await requestsOf(model, 1);
});

let asked = 0;

/** One call of a hook, after all earlier ones. */
function exec(query: string, ...params: SqlValue[]): Promise<SqlOutcome> {
  asked += 1;
  return execAt(1000 + asked, { effect: "test", call: 0 }, query, params);
}

function execAt(
  writes: number,
  place: SqlPlace,
  query: string,
  params: readonly SqlValue[] = [],
  facet = "sql/0/0/0",
  org = platform.scope.orgId,
): Promise<SqlOutcome> {
  return platform.inRollout(id, async (_, { facets, exports }) => {
    const stub: unknown = facets.get(facet, () => ({ class: exports.RolloutSqlObject }));
    const caller = { org, writes };
    return (await (stub as RolloutSqlRpc).exec(caller, place, query, params)).outcome;
  });
}

/** Refused for its estimated work, or by one of SQLite's own limits. */
const refusal = {
  error: expect.stringMatching(
    /too much work|may never end|be (estimated|added)|written out|more than one view|fires too many|out of memory|too complex|too big|too many/,
  ),
};
const wrong = (message: RegExp) => ({ error: expect.stringMatching(message) });

test("an environment that needs SQL has a database of its own, separate from its rollout's object", async () => {
  expect(await platform.rollout(id)).toMatchObject({ status: "running", state: { notes: "" } });
  expect(await exec("select text from notes")).toEqual({ rows: [{ text: "first" }] });
  const tables = await platform.inRollout(id, (_, { storage }) =>
    storage.sql.exec("select name from sqlite_master where name like 'n%'").toArray(),
  );
  expect(tables).toEqual([]);
});

test("it contains nothing of the platform: any name may be used, and every table dropped", async () => {
  expect(await exec("create table facts(x); insert into facts values (1)")).toEqual({ rows: [] });
  expect(await exec("select name from sqlite_master where type = 'table' order by name")).toEqual({
    rows: expect.arrayContaining([{ name: "facts" }, { name: "notes" }]),
  });
  expect(await exec("drop table facts")).toEqual({ rows: [] });
  const rollout = await platform.rollout(id);
  expect(rollout).toMatchObject({ status: "running", state: { notes: "" } });
});

test("a call is atomic there too, and SQLite's error texts are the same", async () => {
  await exec("create table a(x)");
  const half = "insert into a values (1); insert into b values (1)";
  expect(await exec(half)).toEqual(wrong(/^no such table: b$/));
  expect(await exec("select count(*) as n from a")).toEqual({ rows: [{ n: 0 }] });
  expect(await exec("insert into a values (?), (?) returning x", 1, "two")).toEqual({
    rows: [{ x: 1 }, { x: "two" }],
  });
  expect(await exec("select zeroblob(1) as b")).toEqual(wrong(/column b is a blob/));
});

test.each([
  "attach database '/tmp/other' as other",
  "pragma writable_schema = on",
  "vacuum into '/tmp/copy'",
  "begin; drop table notes",
  "select * from _cf_KV",
  "drop table _cf_KV",
  "update _cf_KV set value = null",
  "create trigger t after insert on _cf_KV begin select 1; end",
  "create virtual table v using dbstat",
  "select load_extension('x')",
  "select writefile('/tmp/x', 'y')",
])("%s is an error, and the next call finds everything as it was", async (query) => {
  expect(await exec(query)).toEqual(wrong(/not supported|no such|prohibited|not authorized/));
  expect(await exec("select text from notes")).toEqual({ rows: [{ text: "first" }] });
});

test("too many rows end their call, and the database stays usable", async () => {
  const numbers = "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) select x from c";
  await exec("create table many(x)");
  const written = exec(`insert into many ${numbers} returning x`, LIMITS.sqlRows + 1);
  expect(await written).toEqual(wrong(/add a limit/));
  expect(await exec("select count(*) as n from many")).toEqual({ rows: [{ n: 0 }] });
  expect(await exec(numbers, 1e5)).toEqual(wrong(/add a limit/));
  expect(await exec("drop table many")).toEqual({ rows: [] });
});

test("endless writing stops when the database is full, and nothing of that call is kept", async () => {
  let asked = 0;
  const inHeap = (query: string) => {
    asked += 1;
    return execAt(asked, { effect: "heap", call: 0 }, query, [], "heap");
  };
  await inHeap("create table heap(x)");
  const megabyte = "insert into heap select zeroblob(1000000) from (values (1), (2), (3), (4))";
  let outcome: SqlOutcome = { rows: [] };
  let calls = 0;
  while ("rows" in outcome && calls < 30) {
    outcome = await inHeap(megabyte);
    calls += 1;
  }
  expect(outcome).toEqual(wrong(/the database would be over/));
  expect(await inHeap("select count(*) as n from heap")).toEqual({ rows: [{ n: (calls - 1) * 4 }] });
});

test.each(HOSTILE.map((hostile, index) => ({ ...hostile, index })))(
  "what would compute for long is refused before it runs: $name",
  async ({ index, setup = [], query, params = [], runs }) => {
    const calls = [...setup.map((text) => ({ text, given: [] })), { text: query, given: params }];
    let outcome: SqlOutcome = { rows: [] };
    for (const [call, { text, given }] of calls.entries()) {
      // If the setup is refused that is the result.
      if ("rows" in outcome) {
        outcome = await execAt(1, { effect: `call:${call}`, call: 0 }, text, given, `hostile-${index}`);
      }
    }
    if (runs === true) expect(outcome).toEqual({ rows: [expect.anything()] });
    else expect(outcome).toMatchObject(refusal);
  },
);

test("a repeated call gets its answer; once its hook's outcome is stored the answer is deleted", async () => {
  await exec("create table counted(x integer primary key)");
  const place = { effect: "reply:1", call: 0 };
  const insert = "insert into counted default values returning x";
  const again = (writes: number) => execAt(writes, place, insert);
  expect([await again(2000), await again(2000), await again(2001), await again(2000)]).toEqual(
    [1, 1, 2, 3].map((x) => ({ rows: [{ x }] })),
  );
});

test("calls of a rollout run in their order, however long the first one waits for its scheduling turn", async () => {
  const take = PROCESS_SCHEDULER.take.bind(PROCESS_SCHEDULER);
  const held = vi.spyOn(PROCESS_SCHEDULER, "take").mockImplementationOnce(async (org) => {
    await scheduler.wait(50);
    return await take(org);
  });
  onTestFinished(() => held.mockRestore());
  const queries = ["create table o(x integer primary key)", "insert into o values (1)", "select x from o"];
  const calls = queries.map((query, call) => execAt(1, { effect: "order", call }, query, [], "order"));
  expect((await Promise.all(calls)).at(-1)).toEqual({ rows: [{ x: 1 }] });
});

test("calls of two organisations take turns", async () => {
  const heavy =
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 300000) select count(*) as n from c";
  const order: string[] = [];
  const before = PROCESS_SCHEDULER.levelOf("turns-fair");
  const call = async (org: string, facet: number, at = 0) => {
    const place = { effect: "turns", call: at };
    const outcome = await execAt(1, place, heavy, [], `turns-${org}-${facet}`, `turns-${org}`);
    order.push(`${org} ${facet} ${at}`);
    return outcome;
  };
  const greedy = [0, 1, 2, 3, 4, 5].map((facet) => call("greedy", facet));
  const fair = [0, 1, 2].map((at) => call("fair", 0, at));
  for (const outcome of await Promise.all([...greedy, ...fair])) expect(outcome).toEqual({ rows: [{ n: 300_000 }] });
  expect(PROCESS_SCHEDULER.levelOf("turns-fair") - before).toBeGreaterThan(3 * PASS_STEPS);
  // Earlier calls of the other organisation wait for it.
  expect(order.slice(0, order.indexOf("fair 0 1")).filter((one) => one.startsWith("greedy")).length).toBeLessThan(5);
});

test("a hook's calls wait for the scheduling turn of its run's organisation", async () => {
  const take = vi.spyOn(PROCESS_SCHEDULER, "take");
  onTestFinished(() => take.mockRestore());
  const other = await openPlatform();
  await other.finish({ environment: "desk", model: script(["Done."]), num_examples: 1 });
  expect(take.mock.calls.flat()).toContain(other.scope.orgId);
});

test("it is deleted once its rollout is over", async () => {
  expect(await exec("create table mine(x)")).toEqual({ rows: [] });
  await platform.post(`/v1/runs/${run}/cancel`, {});
  await platform.ended(run);
  await expect.poll(() => platform.inRollout(id, (rollout) => rollout.ask())).toEqual({ state: "answered" });
  expect(await exec("select x from mine")).toEqual(wrong(/no such table: mine/));
});
