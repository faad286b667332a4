/** What publishing and using published environments costs: stored bytes count for the publisher, versions for the user. */
import { env } from "cloudflare:workers";
import { expect, inject, test } from "vitest";
import { AccountObject } from "../../src/billing/object.ts";
import { postStorage } from "../../src/billing/storage-days.ts";
import { DEFAULT_LIMITS } from "../../src/contract/identity.ts";
import { publishPackage, takeDown } from "../../src/hub/service.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { storedBy, storedIn } from "../../src/kernel/db/stored-bytes.ts";
import { publishedVersionsUsed } from "../../src/kernel/db/used-versions.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import { openPaying } from "../kernel/paying.ts";
import { inside, openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { pack, send } from "./packages.ts";

const DAY_MS = 24 * 3600_000;
const CODE = () => inject("bundles")["guess-number"]?.text ?? "";

async function published(api: TestApi, version: string, visibility: string): Promise<string> {
  const name = `${api.scope.orgId.slice(-20)}/game`;
  const code = `${CODE()}\n// ${version}\n`;
  const reply = await send(api, await pack({ name, version, code }), `visibility=${visibility}`);
  expect(reply.status, await reply.clone().text()).toBe(201);
  return `${name}@${version}`;
}

test("the files of a public version are stored bytes of the project that published it, until they are taken down", async () => {
  const api = await openPaying(1_000_000);
  const other = await openPlatform(api.scope.orgId);
  const id = await published(api, "1.0.0", "public");
  const { objects } = await env.STORE.list({ prefix: "org/platform/hub/" });
  expect(objects.length).toBeGreaterThanOrEqual(3);
  const bytes = await storedIn(databaseOf(env), api.scope);
  expect(bytes).toBeGreaterThan(CODE().length);
  expect([await storedBy(databaseOf(env), api.scope.orgId), await storedIn(databaseOf(env), other.scope)]).toEqual([
    bytes,
    0,
  ]);
  await takeDown(env, id, { reason: "it is malware", now: Date.now() });
  expect(await storedIn(databaseOf(env), api.scope)).toBe(0);
});

test("an organisation that stores as much as it may publishes nothing more", async () => {
  const api = await openPlatform();
  const limits = JSON.stringify({ ...DEFAULT_LIMITS, storage_bytes: 1000 });
  await env.DB.prepare("update organizations set limits = ? where id = ?").bind(limits, api.scope.orgId).run();
  const id = await published(api, "1.0.0", "private");
  // What it stores is read once a minute, so this test uses its own clock.
  const late = { now: Date.now() + 120_000, by: "key", allowed: async () => true };
  const bytes = await pack({ name: id.replace(/@.*/, ""), version: "1.0.1", code: CODE() });
  const publication = { visibility: null, allowFailing: false, tag: null };
  const outcome = await publishPackage(env, api.scope, new Blob([bytes]).stream(), publication, late);
  expect(outcome).toMatchObject({
    ok: false,
    error: { code: "rate_limited", message: expect.stringContaining("storage_bytes") },
  });
});

test("the versions that runs used are counted once a day, with the day before, and posted with what is stored", async () => {
  const [publisher, user] = [await openPlatform(), await openPaying(1_000_000)];
  const first = await published(publisher, "1.0.0", "public");
  const second = await published(publisher, "1.0.1", "public");
  const model = script([{ tool_calls: [{ name: "guess", arguments: { number: 50 } }] }, "I give up."]);
  for (const environment of [first, second, first, "guess-number"]) {
    await user.finish({ environment, num_examples: 1, seed: 1, model });
  }
  const today = Math.floor(Date.now() / DAY_MS);
  const used = (day: number) =>
    publishedVersionsUsed(databaseOf(env), user.scope, { start: day * DAY_MS, end: (day + 1) * DAY_MS });
  // A run's row says that it ended a moment after its object does.
  await expect.poll(() => used(today + 1)).toBe(0);
  expect([await used(today - 1), await used(today)]).toEqual([0, 2]);
  const days = { last: today, today: today + 1 };
  for (let times = 0; times < 2; times += 1) {
    expect(await postStorage(env, user.scope, days, new Subrequests())).toBe(true);
  }
  // The ledger copies its usage to the database a minute later.
  await inside(env.ACCOUNT.getByName(`org/${user.scope.orgId}`), AccountObject, async (account) => {
    account.now = () => Date.now() + 120_000;
    await account.alarm();
    account.now = () => Date.now();
  });
  const usage = async () => {
    const from = (today - 1) * 86_400;
    const query = `start_time=${from}&end_time=${from + 4 * 86_400}`;
    const { data } = await (await user.ask(`/v1/usage?${query}`)).json<{
      data: { results: { isolate_days: number }[] }[];
    }>();
    return data
      .flatMap(({ results }) => results.map(({ isolate_days }) => isolate_days))
      .reduce((sum, n) => sum + n, 0);
  };
  expect(await usage()).toBe(2);
});
