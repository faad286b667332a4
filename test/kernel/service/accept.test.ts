import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { RunView } from "../../../src/contract/run.ts";
import { mintRunId, rolloutId } from "../../../src/core/ids.ts";
import { shardName } from "../../../src/kernel/kit/names.ts";
import { idMac } from "../../../src/kernel/kit/secrets.ts";
import { RolloutObject } from "../../../src/kernel/rollout/object.ts";
import { inside, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";
import { everythingStored } from "../stored.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const one = { environment: "gsm8k", dataset: questions(1) };

/** Tables and keys of the run's object, and of the first shard that would play its rollouts. */
async function keptBy(api: TestApi, run: string): Promise<string[]> {
  const kept = (_object: unknown, { storage }: DurableObjectState) => {
    const tables = storage.sql.exec<{ name: string }>("select name from sqlite_master").toArray();
    const names = tables.map(({ name }) => name).filter((name) => !name.startsWith("_cf_"));
    return [...names, ...Array.from(storage.kv.list(), ([key]) => key)];
  };
  const host: DurableObjectStub = env.ROLLOUT.getByName(shardName(api.scope, run, 1));
  return (await Promise.all([api.inRun(run, kept), inside(host, RolloutObject, kept)])).flat();
}

function pathsOf(run: string, rollout: string): [method: string, path: string][] {
  return [
    ["GET", `/v1/runs/${run}`],
    ["GET", `/v1/runs/${run}/events`],
    ["GET", `/v1/runs/${run}/results`],
    ["POST", `/v1/runs/${run}/cancel`],
    ["GET", `/v1/rollouts/${rollout}`],
  ];
}

async function expectNothingThere(api: TestApi, run: string, rollout: string): Promise<void> {
  for (const [method, path] of pathsOf(run, rollout)) {
    const headers = { "content-type": "application/json" };
    const body = method === "POST" ? "{}" : null;
    const response = await api.ask(path, { method, headers, body });
    expect({ path, status: response.status }).toEqual({ path, status: 404 });
    expect(await response.json()).toMatchObject({ error: { code: "not_found" } });
  }
  expect(await keptBy(api, run)).toEqual([]);
}

test("an id that was never minted is a 404 and leaves nothing behind", async () => {
  const mac = idMac(env.ROLLCALL_SECRET);
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  // With a valid signature, but of no run: the hardest guess to detect.
  const run = mintRunId({ now: Date.now(), random, mac });
  const rollout = rolloutId(run, { group: 0, slot: 0, attempt: 0 }, mac);
  await expectNothingThere(platform, run, rollout);
});

test("the id of a real run or rollout with another MAC is a 404 and leaves nothing behind", async () => {
  const { id } = await platform.finish({ ...one, model: script(RIGHT) });
  const spoil = (text: string) => `${text.slice(0, -1)}${text.endsWith("a") ? "b" : "a"}`;
  await expectNothingThere(platform, spoil(id), spoil(rolloutAt(id)));
});

test("a rollout that the run never had is a 404, although its id has a valid signature", async () => {
  const { id } = await platform.finish({ ...one, model: script(RIGHT) });
  const response = await platform.ask(`/v1/rollouts/${rolloutAt(id, 3)}`);
  expect(response.status).toBe(404);
});

test("another organisation's run and rollouts are a 404 for everyone else", async () => {
  const { id } = await platform.finish({ ...one, model: script(RIGHT) });
  await expectNothingThere(await openPlatform(), id, rolloutAt(id));
  expect((await platform.run(id)).status).toBe("completed");
});

test("a repeat of an Idempotency-Key returns the same run and starts nothing; another body is refused", async () => {
  const model = script(RIGHT);
  const request = { endpoint: { base_url: env.MODEL_URL }, ...one, model };
  const key = { "idempotency-key": crypto.randomUUID() };
  const first = await platform.post("/v1/runs", request, key);
  const run = RunView.parse(await first.json());
  const again = await platform.post("/v1/runs", request, key);
  expect(again.status).toBe(202);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(RunView.parse(await again.json()).id).toBe(run.id);
  const other = await platform.post("/v1/runs", { ...request, seed: 1 }, key);
  expect(other.status).toBe(422);
  expect(await other.json()).toMatchObject({ error: { code: "idempotency_conflict" } });
  await platform.ended(run.id);
  expect((await requestsOf(model)).length).toBe(1);
});

test("of two simultaneous requests with one Idempotency-Key only one creates a run", async () => {
  const model = script(RIGHT);
  const request = { endpoint: { base_url: env.MODEL_URL }, ...one, model };
  const key = { "idempotency-key": crypto.randomUUID() };
  const replies = await Promise.all([1, 2, 3].map(() => platform.post("/v1/runs", request, key)));
  const runs = await Promise.all(replies.map(async (reply) => RunView.parse(await reply.json())));
  expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
  await platform.ended(runs[0]?.id ?? "");
  expect((await requestsOf(model)).length).toBe(1);
});

test("an endpoint's key reaches the model and is stored nowhere in plain text", async () => {
  const secret = `sk-${crypto.randomUUID()}`;
  const model = script(RIGHT);
  const endpoint = { base_url: env.MODEL_URL, api_key: secret };
  const run = await platform.finish({ ...one, model, endpoint });
  expect((await requestsOf(model))[0]?.authorization).toBe(`Bearer ${secret}`);
  expect(run.endpoint).toEqual({
    id: expect.stringMatching(/^ep_/),
    name: null,
    base_url: env.MODEL_URL,
    api_key_last4: secret.slice(-4),
  });
  const stored = await everythingStored(platform, [run]);
  for (const text of stored) expect(text).not.toContain(secret);
  // The search itself works.
  expect(stored.filter((text) => text.includes(run.id)).length).toBeGreaterThanOrEqual(3);
});
