/** Objects that an earlier version made: their tables and their heads, opened by this one. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunObject } from "../../../src/index.ts";
import { migrate } from "../../../src/runtime/kit/migrate.ts";
import { NEW_HEAD, RUN_MIGRATIONS, RUN_SCHEMA } from "../../../src/runtime/run/schema.ts";
import { RunStore } from "../../../src/runtime/run/store.ts";
import { inside } from "../platform.ts";

function inStorage<T>(use: (storage: DurableObjectStorage) => T): Promise<T> {
  const stub: DurableObjectStub = env.RUN.getByName(crypto.randomUUID());
  return inside(stub, RunObject, (_, { storage }) => use(storage));
}

const PLACE = { group: 0, slot: 0, attempt: 0 };

test("a run made before pauses and retries were known is opened as if it had never been paused", async () => {
  const { head, row, retries } = await inStorage((storage) => {
    for (const statement of RUN_SCHEMA) storage.sql.exec(statement);
    const { paused, max_concurrent, retried, dead_letters, ...earlier } = NEW_HEAD;
    storage.kv.put("spec", { run_id: "run_1" });
    storage.kv.put("head", { ...earlier, dispatched: 1, in_flight: 1, running: 1 });
    storage.sql.exec(
      "insert into rollouts (group_index, slot, attempt, id, status, ask_at) values (0, 0, 0, 'ro_1', 'running', 0)",
    );
    const store = new RunStore(storage);
    expect(store.spec()).toMatchObject({ run_id: "run_1" });
    return { head: store.head(), row: store.rollout(PLACE), retries: store.retries.first(10) };
  });
  expect(head).toMatchObject({ dispatched: 1, paused: false, max_concurrent: null, retried: 0 });
  expect(row).toMatchObject({ id: "ro_1", cancel: null });
  expect(retries).toEqual([]);
});

test("a migration is applied once, and one that fails leaves nothing of itself", async () => {
  const tables = await inStorage((storage) => {
    const named = (name: string) => ({ name, statements: [`create table ${name} (a)`] });
    migrate(storage, [named("one")]);
    migrate(storage, [named("one"), named("two")]);
    const broken = { name: "three", statements: ["create table three (a)", "no statement"] };
    expect(() => migrate(storage, [named("one"), named("two"), broken])).toThrow();
    return storage.sql
      .exec("select name from sqlite_master where name in ('one', 'two', 'three') order by name")
      .toArray()
      .map(({ name }) => name);
  });
  expect(tables).toEqual(["one", "two"]);
});

test("an object nobody created is asked for everything and stays empty", async () => {
  const stub: DurableObjectStub = env.RUN.getByName(crypto.randomUUID());
  const left = await inside(stub, RunObject, async (run, { storage }) => {
    expect(await run.pause(true)).toBe(false);
    await run.setMaxConcurrent(4);
    expect(await run.retry({ classes: null, key: "k", hash: "h" })).toBe("unknown");
    expect(await run.cancelRollout(PLACE)).toBe(false);
    expect(run.auditRecords()).toBeNull();
    expect(run.auditRows(0)).toEqual([]);
    return storage.sql.exec("select name from sqlite_master where name = 'rollouts'").toArray();
  });
  expect(left).toEqual([]);
  expect(RUN_MIGRATIONS.length).toBeGreaterThan(0);
});
