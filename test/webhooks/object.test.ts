/** Deliveries to an endpoint, with failures of the endpoint and of its object. Clocks and alarms are driven by hand. */

import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { Webhook } from "standardwebhooks";
import { beforeAll, expect, test, vi } from "vitest";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { inProject } from "../../src/kernel/db/scoped.ts";
import { PROCESS_SCHEDULER } from "../../src/kernel/kit/fair-scheduler.ts";
import { webhookSecrets } from "../../src/webhooks/tables.ts";
import { WebhookBacklog, WebhookView } from "../../src/webhooks/wire.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { eventOf, type Listening, listen } from "./listening.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 86_400_000;

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

async function view({ endpoint }: Listening): Promise<WebhookView> {
  return WebhookView.parse(await (await api.ask(`/v1/webhook-endpoints/${endpoint.id}`)).json());
}

async function deliveries(
  { endpoint }: Listening,
  query = "",
): Promise<{ data: Record<string, unknown>[]; has_more: boolean; last_id: string }> {
  return await (await api.ask(`/v1/webhook-endpoints/${endpoint.id}/deliveries${query}`)).json();
}

function send({ endpoint }: Listening, path: string, body: object = {}): Promise<Response> {
  return api.post(`/v1/webhook-endpoints/${endpoint.id}${path}`, body);
}

function change({ endpoint }: Listening, patch: object): Promise<Response> {
  return api.ask(`/v1/webhook-endpoints/${endpoint.id}`, {
    method: "PATCH",
    body: JSON.stringify(patch),
    headers: { "content-type": "application/json" },
  });
}

/** The numbers of the received events, by run, in the order of arrival. */
function taken({ got }: Listening): Map<string, number[]> {
  const by = new Map<string, number[]>();
  for (const { body } of got) {
    const { run_id, n } = JSON.parse(body).data;
    by.set(run_id, [...(by.get(run_id) ?? []), n]);
  }
  return by;
}

test("each attempt takes a scheduling turn of its organisation", async () => {
  const one = await listen(api);
  const spend = vi.spyOn(PROCESS_SCHEDULER, "spend");
  await one.enqueue([eventOf("a", 1), eventOf("b", 1)]);
  await one.run();
  const turns = spend.mock.calls.filter(([org]) => org === api.scope.orgId);
  spend.mockRestore();
  expect(one.got).toHaveLength(2);
  expect(turns).toHaveLength(2);
});

test("a receiver that is down for a day gets everything once, in order per run, with kills of the object", async () => {
  const down = await listen(api);
  const up = down.now + DAY;
  let tried = 0;
  down.reply = () => {
    tried += 1;
    if (down.now < up) throw new TypeError("connection refused");
    return new Response("ok");
  };
  const numbers = [1, 2, 3];
  for (const n of numbers) {
    const events = Array.from({ length: 3 }, (_, run) => eventOf(`d${run}`, n));
    await down.enqueue(events);
    // The sender was killed before the answer, and sends them again.
    await down.enqueue(events);
    await down.run(down.now + 6 * 3_600_000);
    await down.in((_, state) => state.abort("killed")).catch(() => undefined);
  }
  expect(down.got).toHaveLength(0);
  // Only the first event of each run was tried: the others wait for it.
  expect(tried).toBeLessThan(3 * 10);
  expect((await view(down)).backlog).toMatchObject({ pending: 9, failed: 0 });
  await down.run(up + DAY);
  expect(taken(down)).toEqual(new Map(Array.from({ length: 3 }, (_, run) => [`run_d${run}`, numbers])));
  expect(new Set(down.got.map(({ headers }) => headers.get("webhook-id"))).size).toBe(9);
  for (const { headers, body, at } of down.got) {
    expect(headers.get("webhook-timestamp")).toBe(String(Math.floor(at / 1000)));
    const signed = new Webhook(down.endpoint.secret ?? "").sign(headers.get("webhook-id") ?? "", new Date(at), body);
    expect(headers.get("webhook-signature")).toBe(signed);
  }
  expect((await view(down)).backlog).toMatchObject({ pending: 0, pending_bytes: 0, failures_in_a_row: 0 });
});

test("an endpoint that never answers is disabled after ten tries, and can replay the failed events", async () => {
  const one = await listen(api);
  one.reply = () => new Response("no\u202e such\nplace", { status: 500 });
  await one.enqueue([eventOf("n1", 1), eventOf("n1", 2)]);
  await one.run(one.now + 4 * DAY);
  expect(one.got).toHaveLength(10);
  const { disabled_reason, backlog } = await view(one);
  expect(disabled_reason).toBe("all 10 attempts to deliver run.paused failed: answered 500");
  expect(backlog).toMatchObject({ pending: 0, failed: 2 });
  const [second, first] = (await deliveries(one)).data;
  expect(first).toMatchObject({ state: "failed", attempts: 10, status: 500, answer: "no\\u202e such place" });
  expect(second).toMatchObject({ state: "failed", attempts: 0 });
  expect((await send(one, "/test")).status).toBe(409);
  one.reply = () => new Response(null, { status: 200 });
  await change(one, { disabled: false });
  await one.run();
  const replayed = await send(one, "/replay", { after: 0, before: Math.floor(one.now / 1000) + 1 });
  expect(await replayed.json()).toMatchObject({ replayed: 2 });
  await one.run();
  expect(taken(one).get("run_n1")?.slice(10)).toEqual([1, 2]);
  expect((await view(one)).backlog).toMatchObject({ pending: 0, failed: 0 });
});

test("an event that is refused for three days is given up alone if others are delivered meanwhile", async () => {
  const one = await listen(api);
  one.reply = ({ body }) => new Response(null, { status: JSON.parse(body).data.run_id === "run_bad" ? 500 : 204 });
  await one.enqueue([eventOf("bad", 1)]);
  await one.run(one.now + DAY);
  await one.enqueue([eventOf("good", 1)]);
  await one.run(one.now + 3 * DAY);
  expect(await view(one)).toMatchObject({ disabled_reason: null, backlog: { pending: 0, failed: 1 } });
  expect((await deliveries(one, "?state=failed")).data).toMatchObject([{ attempts: 10, status: 500 }]);
  // The given-up event is kept for a replay, and the following ones are sent.
  one.reply = () => new Response(null, { status: 204 });
  await one.enqueue([eventOf("bad", 2)]);
  await one.run();
  const replayed = await send(one, "/replay", { after: 0, before: Math.floor(one.now / 1000) + 1 });
  expect(await replayed.json()).toMatchObject({ replayed: 1 });
  await one.run();
  expect(taken(one).get("run_bad")?.slice(10)).toEqual([2, 1]);
  expect((await view(one)).backlog).toMatchObject({ pending: 0, failed: 0 });
});

test("replayed events go before waiting events of their subject, which are sent only after them", async () => {
  const one = await listen(api);
  const now = () => Math.floor(one.now / 1000) + 1;
  await one.enqueue([eventOf("r", 1), eventOf("r", 2)]);
  await one.run();
  const tries: number[] = [];
  one.reply = ({ body }) => {
    tries.push(JSON.parse(body).data.n);
    return new Response(null, { status: tries.length < 3 ? 500 : 204 });
  };
  // It is due when the earlier ones are replayed.
  await one.enqueue([eventOf("r", 3)]);
  expect(await (await send(one, "/replay", { after: 0, before: now(), states: ["delivered"] })).json()).toMatchObject({
    replayed: 2,
  });
  await one.run(one.now + DAY);
  expect(tries).toEqual([1, 1, 1, 2, 3]);
  expect((await view(one)).backlog).toMatchObject({ pending: 0, failed: 0 });
});

test("a replay that exceeds the queue's space takes the oldest", async () => {
  const one = await listen(api);
  await one.enqueue([eventOf("a", 1), eventOf("b", 1), eventOf("a", 2), eventOf("b", 2)]);
  await one.run();
  await one.in((_, { storage }) => {
    storage.kv.put("standing", { ...storage.kv.get<object>("standing"), pending: 9998 });
  });
  await one.in((_, state) => state.abort("killed")).catch(() => undefined);
  const replay = { after: 0, before: Math.floor(one.now / 1000) + 1, states: ["delivered"] };
  expect(await (await send(one, "/replay", replay)).json()).toMatchObject({ replayed: 2 });
  await one.run();
  expect(one.got.slice(4).map(({ body }) => JSON.parse(body).data)).toEqual([
    { run_id: "run_a", n: 1 },
    { run_id: "run_b", n: 1 },
  ]);
});

test("an event sent again days later is in the log once, and others sent with it are delivered", async () => {
  const one = await listen(api);
  await one.enqueue([eventOf("t1", 1)]);
  await one.run();
  for (const day of [1, 2]) {
    one.now += DAY + MINUTE;
    await one.enqueue([eventOf("t1", 1), eventOf("t1", 1 + day)]);
    await one.run();
  }
  expect(taken(one).get("run_t1")).toEqual([1, 2, 3]);
  expect((await view(one)).backlog).toMatchObject({ pending: 0, pending_bytes: 0 });
});

/** Seals the endpoint's secret so that it cannot be decrypted here. The returned function restores it. */
async function lock({ endpoint }: Listening): Promise<() => Promise<unknown>> {
  const database = inProject(databaseOf(env), api.scope);
  const [secret] = await database.select(webhookSecrets, eq(webhookSecrets.webhook_id, endpoint.id));
  if (secret === undefined) throw new Error("it has no secret");
  const sealedBy = (sealed_secret: string) =>
    database.update(webhookSecrets, { sealed_secret }, eq(webhookSecrets.id, secret.id));
  await sealedBy(secret.sealed_secret.replace(/^[^.]+/, "lost"));
  return () => sealedBy(secret.sealed_secret);
}

test("if a secret cannot be decrypted for an hour, the endpoint is disabled with the reason", async () => {
  const one = await listen(api);
  const unlock = await lock(one);
  await one.enqueue([eventOf("locked", 1)]);
  await one.run(one.now + 30 * MINUTE);
  expect((await view(one)).backlog).toMatchObject({ pending: 1 });
  await unlock();
  await one.run(one.now + 10 * MINUTE);
  expect(one.got).toHaveLength(1);
  // The earlier time does not count.
  await lock(one);
  await one.enqueue([eventOf("locked", 2)]);
  await one.run(one.now + 50 * MINUTE);
  expect(await view(one)).toMatchObject({ disabled_reason: null, backlog: { pending: 1, failed: 0 } });
  await one.run(one.now + HOUR);
  const reason = "its secret cannot be decrypted: rotate it";
  expect(await view(one)).toMatchObject({ disabled_reason: reason, backlog: { pending: 0, failed: 1 } });
  expect(await one.in((_, state) => state.storage.getAlarm())).toBeGreaterThan(one.now + DAY);
});

test("an endpoint whose secret cannot be decrypted gets pending events once the secret is rotated", async () => {
  const one = await listen(api);
  await lock(one);
  await one.enqueue([eventOf("rotated", 1)]);
  await one.run();
  expect(one.got).toHaveLength(0);
  expect((await send(one, "/rotate-secret", { overlap_s: 0 })).status).toBe(200);
  await one.run();
  expect(one.got).toHaveLength(1);
});

test("a re-enabled endpoint gets several events at a time, whatever failed before", async () => {
  const one = await listen(api);
  const events = (n: number) => Array.from({ length: 12 }, (_, run) => eventOf(`again${run}`, n));
  one.reply = () => new Response(null, { status: 500 });
  await one.enqueue(events(1));
  await one.run();
  expect((await view(one)).backlog.failures_in_a_row).toBe(12);
  for (const disabled of [true, false]) {
    await change(one, { disabled });
    await one.run();
  }
  expect((await view(one)).backlog.failures_in_a_row).toBe(0);
  let under = 0;
  const several = Promise.withResolvers<void>();
  // The first event is answered once a second one has come.
  one.reply = async () => {
    under += 1;
    if (under > 1) several.resolve();
    await several.promise;
    under -= 1;
    return new Response(null, { status: 204 });
  };
  await one.enqueue(events(2));
  await one.run();
  expect(one.got).toHaveLength(24);
});

test("410 disables immediately; a redirect is a failure and not followed; Retry-After is respected", async () => {
  const gone = await listen(api);
  gone.reply = () => new Response(null, { status: 410 });
  await gone.enqueue([eventOf("g", 1)]);
  await gone.run();
  expect(gone.got).toHaveLength(1);
  expect(await view(gone)).toMatchObject({ disabled_reason: "it answered 410 to run.paused" });

  const busy = await listen(api);
  const [replies, start] = [[302, 429, 200], busy.now];
  busy.reply = () => {
    const status = replies.shift() ?? 200;
    return new Response(null, { status, headers: { location: "https://elsewhere.example/", "retry-after": "7200" } });
  };
  await busy.enqueue([eventOf("b", 1), eventOf("c", 1)]);
  await busy.run(start + 2 * MINUTE);
  // Run c waits too: the whole endpoint rests.
  expect(busy.got.map(({ url }) => url)).toEqual(["https://hooks.example/in", "https://hooks.example/in"]);
  expect((await view(busy)).backlog.resting_until).not.toBeNull();
  // After a change of the endpoint, the old address's Retry-After no longer applies.
  await change(busy, { url: "https://hooks.example/other" });
  expect((await view(busy)).backlog.resting_until).toBeNull();
  await busy.run(start + 3 * 3_600_000);
  expect(busy.got).toHaveLength(4);
  expect(await deliveries(busy, "?state=delivered")).toMatchObject({
    data: [{ state: "delivered" }, { state: "delivered" }],
  });
});

test("a thousand events are sent six at a time, and beyond the limit the oldest are dropped and counted", async () => {
  const many = await listen(api, { description: "many" });
  let [under, most] = [0, 0];
  const two = Promise.withResolvers<void>();
  many.reply = async () => {
    under += 1;
    most = Math.max(most, under);
    // The first one is not answered before a second is on its way.
    if (under > 1) two.resolve();
    await two.promise;
    under -= 1;
    return new Response(null, { status: 204 });
  };
  const events = Array.from({ length: 1000 }, (_, n) => eventOf(`m${n % 50}`, Math.floor(n / 50)));
  await many.enqueue(events);
  await many.in((_, { storage }) => {
    // As if this many more were pending.
    storage.kv.put("standing", { ...storage.kv.get<object>("standing"), pending: 9999 });
  });
  await many.in((_, state) => state.abort("killed")).catch(() => undefined);
  await many.enqueue([eventOf("x", 1), eventOf("x", 2)]);
  expect((await view(many)).backlog).toMatchObject({ pending: 10_000, dropped: 1 });
  const [gone] = (await deliveries(many, "?state=dropped")).data;
  expect((await send(many, `/deliveries/${gone?.["id"]}/replay`)).status).toBe(409);
  await many.run();
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(6);
  expect(many.got).toHaveLength(1001);
  expect(taken(many).get("run_m1")).toEqual(Array.from({ length: 20 }, (_, n) => n));
  const { data, has_more, last_id } = await deliveries(many, "?limit=100");
  expect([data.length, has_more]).toEqual([100, true]);
  expect((await deliveries(many, `?limit=1&after=${last_id}`)).data).toHaveLength(1);
});

test("an endpoint gets the events it wants, signed by both secrets of a rotation, a test and a replay", async () => {
  const one = await listen(api, { events: ["run.*"] });
  const rotated = await (await send(one, "/rotate-secret", { overlap_s: 3600 })).json<{
    secret: string;
    secrets: unknown[];
  }>();
  expect(rotated.secrets).toHaveLength(2);
  const asked = await send(one, "/test");
  expect(asked.status).toBe(202);
  const { id } = await asked.json<{ id: string }>();
  one.now = Date.now();
  await one.in((object) => object.alarm());
  const [{ headers, body } = { headers: new Headers(), body: "" }] = one.got;
  for (const secret of [one.endpoint.secret ?? "", rotated.secret]) {
    expect(new Webhook(secret).verify(body, Object.fromEntries(headers))).toMatchObject({ type: "webhook.test" });
  }
  expect((await send(one, `/deliveries/${id}/replay`)).status).toBe(200);
  await one.in((object) => object.alarm());
  expect(one.got.map((got) => got.headers.get("webhook-id"))).toEqual([id, id]);
  expect((await send(one, "/deliveries/msg_none/replay")).status).toBe(404);
});

test("a deleted endpoint gets and keeps nothing, and an object without events writes nothing", async () => {
  const one = await listen(api);
  expect(WebhookBacklog.parse(await one.in((object) => object.backlog()))).toMatchObject({ pending: 0 });
  expect(await one.in((_, state) => [...state.storage.kv.list()].length)).toBe(0);
  await one.enqueue([eventOf("k", 1)]);
  const path = `/v1/webhook-endpoints/${one.endpoint.id}`;
  expect((await api.ask(path, { method: "DELETE" })).status).toBe(200);
  await one.enqueue([eventOf("k", 2)]);
  await one.run();
  expect([one.got.length, (await api.ask(path)).status]).toEqual([0, 404]);
});
