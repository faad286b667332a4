/** What several ask for at once is looked up once, and what fails, hangs or is forgotten meanwhile is not kept. */
import { expect, test } from "vitest";
import { TtlCache } from "../../../src/runtime/kit/caches.ts";

const KEPT_MS = 1000;

/** Look-ups that end when the test says so. */
class LookUps {
  readonly begun: PromiseWithResolvers<string>[] = [];

  readonly read = (): Promise<string> => {
    const lookUp = Promise.withResolvers<string>();
    this.begun.push(lookUp);
    return lookUp.promise;
  };
}

test("those who ask while it is looked up share that look-up, and its value is kept for its time", async () => {
  const [cache, { begun, read }] = [new TtlCache<string>(KEPT_MS), new LookUps()];
  const asked = [1, 2, 3].map(() => cache.get("a", 0, read));
  const other = cache.get("b", 0, read);
  expect(begun).toHaveLength(2);
  begun[0]?.resolve("found");
  begun[1]?.resolve("another");
  expect(await Promise.all([...asked, other])).toEqual(["found", "found", "found", "another"]);
  expect(await cache.get("a", KEPT_MS - 1, read)).toBe("found");
  expect(begun).toHaveLength(2);
  void cache.get("a", KEPT_MS, read);
  expect(begun).toHaveLength(3);
});

test("a look-up that fails fails for all who wait, and whoever asks next looks anew", async () => {
  const [cache, { begun, read }] = [new TtlCache<string>(KEPT_MS), new LookUps()];
  const asked = [1, 2, 3].map(() => cache.get("a", 0, read));
  begun[0]?.reject(new Error("away"));
  const ends = await Promise.allSettled(asked);
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const again = cache.get("a", 0, read);
  expect(begun).toHaveLength(2);
  begun[1]?.resolve("found");
  expect(await again).toBe("found");
});

test("what is forgotten while it is looked up is looked up anew, and the older answer is not kept", async () => {
  const [cache, { begun, read }] = [new TtlCache<string>(KEPT_MS), new LookUps()];
  const before = cache.get("a", 0, read);
  cache.forget("a");
  const after = cache.get("a", 0, read);
  expect(begun).toHaveLength(2);
  begun[1]?.resolve("new");
  expect(await after).toBe("new");
  begun[0]?.resolve("old");
  expect(await before).toBe("old");
  expect(await cache.get("a", 0, read)).toBe("new");
});

test("whoever waits for a look-up that never answers looks for itself, and later ones do not wait for it", async () => {
  const [cache, { begun, read }] = [new TtlCache<string>(KEPT_MS, 0), new LookUps()];
  void cache.get("a", 0, read);
  const second = cache.get("a", 0, () => Promise.resolve("found"));
  expect(await second).toBe("found");
  expect(await cache.get("a", 0, read)).toBe("found");
  expect(begun).toHaveLength(1);
});
