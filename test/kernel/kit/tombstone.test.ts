/** What remains of a freed object, on an object's own storage. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { Tombstone } from "../../../src/kernel/kit/tombstone.ts";

/** Runs with the storage of an unused object, and a count of the reads of its values. */
async function counting(use: (storage: DurableObjectStorage, reads: () => number) => Promise<void>): Promise<void> {
  await runInDurableObject(env.RUN.get(env.RUN.newUniqueId()), async (_, { storage }) => {
    let reads = 0;
    const kv = new Proxy(storage.kv, {
      get(target, name) {
        reads += name === "get" ? 1 : 0;
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const counted = new Proxy(storage, {
      get(target, name) {
        const member: unknown = name === "kv" ? kv : Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    await use(counted, () => reads);
  });
}

test("an object that was not freed reads its tombstone once, however often it is asked", async () => {
  await counting(async (storage, reads) => {
    const tombstone = new Tombstone(storage);
    expect([tombstone.stands, tombstone.stands, tombstone.stands]).toEqual([false, false, false]);
    expect(reads()).toBe(1);
  });
});

test("a tombstone is found after it was set, in this instance and the next", async () => {
  await counting(async (storage) => {
    const tombstone = new Tombstone(storage);
    expect(tombstone.stands).toBe(false);
    await tombstone.set(Date.now());
    expect(tombstone.stands).toBe(true);
    expect(new Tombstone(storage).stands).toBe(true);
  });
});
