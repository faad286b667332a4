/** `rollcall deploy repair`: a database that was taken back to an earlier time gets the runs that were created since. */
import { expect, onTestFinished, test, vi } from "vitest";
import { TEST_HANGS_MS, WAIT } from "../hang-limits.ts";
import { startArithmeticModel } from "../local/arithmetic-model.ts";
import { openBackupStand } from "./backup-stand.ts";

type Row = Readonly<Record<string, unknown>>;

/** Returns what takes the database back to now, as Cloudflare's Time Travel does. */
async function rememberNow(database: D1Database): Promise<() => Promise<void>> {
  const listed = await database
    .prepare("select name from sqlite_master where type = 'table' and name not like '\\_cf%' escape '\\'")
    .all<{ name: string }>();
  const names = listed.results.map(({ name }) => name).filter((name) => !name.startsWith("sqlite_"));
  // Triggers on other tables write to it.
  names.sort((a, b) => Number(a === "totals") - Number(b === "totals"));
  const tables: (readonly [string, readonly Row[]])[] = [];
  for (const name of names) tables.push([name, (await database.prepare(`select * from ${name}`).all<Row>()).results]);
  return async () => {
    for (const [name, rows] of tables) {
      await database.prepare(`delete from ${name}`).run();
      for (const row of rows) {
        const columns = Object.keys(row);
        const values = columns.map(() => "?").join(", ");
        const insert = `insert into ${name} (${columns.join(", ")}) values (${values})`;
        await database
          .prepare(insert)
          .bind(...Object.values(row))
          .run();
      }
    }
  };
}

test("runs that were created after the time of the database are listed, audited and controlled after a repair", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openBackupStand();
  const prod = await stand.deployment("prod");
  const repair = () => stand.rollcall("deploy", "repair", "--name", "prod", "--json");
  const key = await prod.found();
  const client = prod.client(key);
  const model = await startArithmeticModel(0);
  onTestFinished(() => model.stop());
  const { organization } = await client.whoAmI();
  await client.organizations.update(organization.id, { billing: "postpaid" });
  const endpoint = { base_url: model.url, api_key: "a-key-of-the-endpoint" };
  const asked = { environment: "calculator", model: "arithmetic", endpoint, num_examples: 4 };
  const end = async (id: string) => {
    for await (const _ of client.runs.events(id, { signal: AbortSignal.timeout(60_000) }));
  };
  const takeBacks = await Promise.all(prod.databases.map(rememberNow));

  const { id: ended } = await client.runs.create({ ...asked, name: "of today" });
  await end(ended);
  const requests = prod.requests(key);
  const seen = () =>
    Promise.all(["", "/results", "/rollouts", "/events"].map((path) => requests.text(`/runs/${ended}${path}`, {})));
  const before = await seen();
  model.setLatency(10 * 60_000);
  const { id: unfinished } = await client.runs.create({ ...asked, num_examples: 8, max_concurrent: 8 });
  await vi.waitUntil(() => model.unanswered() === 8, WAIT);
  const listed = async () => {
    const ids: string[] = [];
    for await (const { id } of client.runs.list()) ids.push(id);
    return ids.sort();
  };
  for (const takeBack of takeBacks) await takeBack();
  expect(await listed()).toEqual([]);

  stand.killAt(prod, (request) => request === "POST /operator/backup/repair");
  expect((await repair()).code).toBe(null);
  const done = await repair();
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining("2 runs checked")]);
  expect(JSON.parse(done.stdout)).toMatchObject({ checked: 2, unowned_runs: 0, failed_runs: 0, next: null });
  expect(JSON.parse((await repair()).stdout)).toMatchObject({ checked: 2, restored: 0, failed_runs: 0 });
  expect(await listed()).toEqual([ended, unfinished].sort());
  expect(await seen()).toEqual(before);
  expect((await client.runs.audit(ended)).holds).toBe(true);

  await client.runs.cancel(unfinished);
  await end(unfinished);
  expect(await client.runs.get(unfinished)).toMatchObject({ status: "cancelled", counts: { cancelled: { user: 8 } } });
  await vi.waitUntil(async () => (await client.runs.audit(unfinished)).holds, WAIT);
  expect((await client.ledger.verify()).ok).toBe(true);
  const refused = await stand.rollcall("deploy", "repair", "--name", "prod", "--after", "elsewhere");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("elsewhere is not a place of a repair")]);
});
