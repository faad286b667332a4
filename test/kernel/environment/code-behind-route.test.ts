/** What the store has about a build that may have ended the process. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { behindRoute, StoredNames } from "../../../src/kernel/environment/code-behind-route.ts";

const names = new StoredNames(env.STORE);
const unused = () => `org/platform/builds/${crypto.randomUUID()}`;

test("a build that was recorded in two deaths is given up, however often it is requested", async () => {
  const key = unused();
  expect(await names.admitToQuarantine(key, "first", true)).toEqual({ deaths: 0 });
  expect(await names.admitToQuarantine(key, "first", true)).toEqual({ deaths: 0 });
  expect(await names.admitToQuarantine(key, "second", false)).toEqual({ deaths: 0 });
  expect(await names.admitToQuarantine(key, "third", true)).toEqual({ deaths: 1 });
  expect(await names.admitToQuarantine(key, "fourth", true)).toBeNull();
  expect(await names.admitToQuarantine(key, "fifth", true)).toBeNull();
});

test("a death after the build, or while it waited, does not count; one before it counts until it is built", async () => {
  const key = unused();
  await names.admitToQuarantine(key, "first", true);
  await names.clear(key, false);
  expect(await env.STORE.head(key)).toBeNull();
  await names.admitToQuarantine(key, "first", true);
  expect(await names.admitToQuarantine(key, "second", true)).toEqual({ deaths: 1 });
  await names.clear(key, false);
  expect(await names.admitToQuarantine(key, "third", true)).toEqual({ deaths: 1 });
  await names.clear(key, true);
  expect(await env.STORE.head(key)).toBeNull();
});

test("if nothing died, nothing is written", async () => {
  const before = await env.STORE.list({ prefix: "org/platform/" });
  const seen: unknown[] = [];
  await behindRoute(env, { id: "any", digest: "any" }, {}, async () => {
    seen.push(await env.STORE.list({ prefix: "org/platform/" }));
  });
  expect(seen).toEqual([before]);
});
