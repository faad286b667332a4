/** Changes of an object's tables since it was created, and objects that were never created. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { RunObject } from "../../../src/index.ts";
import { migrate } from "../../../src/kernel/kit/migrate.ts";
import { inside } from "../platform.ts";

function inStorage<T>(use: (storage: DurableObjectStorage) => T): Promise<T> {
  const stub: DurableObjectStub = env.RUN.getByName(crypto.randomUUID());
  return inside(stub, RunObject, (_, { storage }) => use(storage));
}

const PLACE = { group: 0, slot: 0, attempt: 0 };

test("a migration is applied once, and a failing one leaves no trace", async () => {
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

test("an object that was never created answers every call and stays empty", async () => {
  const stub: DurableObjectStub = env.RUN.getByName(crypto.randomUUID());
  const left = await inside(stub, RunObject, async (run, { storage }) => {
    expect(await run.pause(true)).toBe(false);
    await run.setMaxConcurrent(4);
    expect(await run.retry({ classes: null, key: "k", hash: "h" })).toBe("unknown");
    expect(await run.cancelRollout(PLACE)).toBe(false);
    expect(run.auditRecords()).toBeNull();
    return storage.sql.exec("select name from sqlite_master where name = 'rollouts'").toArray();
  });
  expect(left).toEqual([]);
});
