/** A trainer's object: its offers, its reports, and its state after a crash. Clocks and alarms by hand. */

import { env } from "cloudflare:workers";
import { createHmac } from "node:crypto";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { BatchOffer } from "../../../src/contract/trainer-wire.ts";
import { RunObject } from "../../../src/index.ts";
import { TrainerObject } from "../../../src/kernel/trainer/object.ts";
import { type Inside, inside, isOf, openPlatform, type TestApi } from "../platform.ts";
import { type Delivery, GOING, openDelivery, storeBatch } from "../trainer-batch.ts";

const HOUR = 3_600_000;
const PUSH = { delivery: "push", url: "https://gpu.example/batches" };

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The run's object answers its trainer's object with this, and does nothing else. */
function listenOnly(run_id: string, answer: RunObject["trainerChanged"]): void {
  const { trainerChanged } = RunObject.prototype;
  vi.spyOn(RunObject.prototype, "trainerChanged").mockImplementation(function (this: RunObject, snapshot) {
    return isOf(run_id, this) ? answer(snapshot) : trainerChanged.call(this, snapshot);
  });
}

function inTrainer<T>(run_id: string, use: Inside<TrainerObject, T>): Promise<T> {
  const { orgId, projectId } = api.scope;
  return inside(env.TRAINER.getByName(`org/${orgId}/${projectId}/${run_id}`), TrainerObject, use);
}

interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A trainer's address that gives these answers in turn, and then no more; its clock is an hour ahead. */
async function listening(
  { run_id }: Delivery,
  replies: readonly (() => Response)[],
): Promise<{ sent: Sent[]; fire: (now?: number) => Promise<number> }> {
  const sent: Sent[] = [];
  const left = [...replies];
  const start = Date.now() + HOUR;
  await inTrainer(run_id, (object) => {
    object.now = () => start;
    object.network = async ({ href: url }, init) => {
      sent.push({ url, headers: new Headers(init.headers), body: String(init.body) });
      const reply = left.shift();
      if (reply === undefined) throw new TypeError("connection refused");
      return reply();
    };
  });
  const fire = (now = start) =>
    inTrainer(run_id, async (object) => {
      object.now = () => now;
      await object.alarm();
      return now;
    });
  return { sent, fire };
}

function reply(status: number, body: unknown = {}, headers = {}): () => Response {
  return () => Response.json(body, { status, headers });
}

test("a batch is pushed signed, with its manifest; after a 202 the trainer can heartbeat and acknowledge it", async () => {
  const delivery = await openDelivery(api.scope, { target: PUSH });
  const { run_id, trainer, push_secret } = delivery;
  const { sent, fire } = await listening(delivery, [reply(202)]);
  const { ready, manifest } = await storeBatch(api.scope, run_id, 1);
  await trainer.ready([ready], GOING);
  await fire();
  const [{ url = "", headers = new Headers(), body = "" } = {}] = sent;
  const { type, data } = BatchOffer.parse(JSON.parse(body));
  expect([url, type, data.step, data.epoch, data.base_url]).toEqual([
    ...[PUSH.url, "trainer.batch.offer", 1, 1, "http://platform.test"],
  ]);
  expect(data.manifest).toEqual(manifest);
  const id = headers.get("webhook-id");
  expect(id).toBe(`msg_${manifest.batch_id}_1`);
  const key = Buffer.from((push_secret ?? "").replace("whsec_", ""), "base64");
  const text = `${id}.${headers.get("webhook-timestamp")}.${body}`;
  const signature = createHmac("sha256", key).update(text).digest("base64");
  expect(headers.get("webhook-signature")).toBe(`v1,${signature}`);
  const proof = { token: data.lease.token, epoch: 1 };
  expect(await trainer.heartbeat(data.lease.id, proof)).toMatchObject({ ok: true });
  const { batch_id, sha256 } = manifest;
  const done = { ...proof, batch_id, sha256, produced_version: 1, metrics: {} };
  expect(await trainer.ack(data.lease.id, done)).toMatchObject({ ok: true });
});

test("a push trainer that is down for an hour loses nothing: the same lease is offered until it is back", async () => {
  const delivery = await openDelivery(api.scope, { target: PUSH });
  const away = Array.from({ length: 3 }, () => reply(502));
  const { sent, fire } = await listening(delivery, [...away, reply(302), reply(202)]);
  const { ready } = await storeBatch(api.scope, delivery.run_id, 1);
  await delivery.trainer.ready([ready], GOING);
  const start = await fire();
  for (const at of [10_000, 60_000, HOUR / 2, HOUR]) await fire(start + at);
  const leases = sent.map(({ body }) => BatchOffer.parse(JSON.parse(body)).data.lease);
  expect(leases.map(({ id, attempt }) => [id, attempt])).toEqual(Array.from({ length: 5 }, () => [leases[0]?.id, 1]));
  expect(await delivery.trainer.batch(1)).toMatchObject({ state: "leased" });
});

test("a long manifest is linked, and an answer that says the batch is trained acknowledges it and publishes its weights", async () => {
  const delivery = await openDelivery(api.scope, { target: PUSH });
  const many = Array.from({ length: 150 }, () => 3);
  const { ready, manifest } = await storeBatch(api.scope, delivery.run_id, 1, many);
  const trained = { acked: true, sha256: manifest.sha256, produced_version: 1 };
  const acked = { ...trained, metrics: { loss: 2 }, published: { label: "step_1" } };
  const { sent, fire } = await listening(delivery, [reply(200, acked)]);
  await delivery.trainer.ready([ready], GOING);
  await fire();
  const { data } = BatchOffer.parse(JSON.parse(sent[0]?.body ?? ""));
  expect(data.manifest).toBeUndefined();
  expect(data.manifest_url).toBe(`http://platform.test/v1/runs/${delivery.run_id}/batches/1`);
  const snapshot = await delivery.trainer.snapshot({ acked_step: 0 });
  expect(snapshot).toMatchObject({ acked_step: 1, acks: [{ step: 1, metrics: { loss: 2 } }] });
  expect(await delivery.trainer.weightVersions()).toMatchObject({
    ...{ published: 1, versions: [{ version: 1, label: "step_1", state: "published" }] },
  });
  // Once more to a run that has it already, because it may have got it before the metrics.
  const again = await delivery.trainer.snapshot({ acked_step: 1 });
  expect(again?.acks).toMatchObject([{ step: 1, metrics: { loss: 2 } }]);
});

test("changes are reported to the run's object until it acknowledges them, by the alarm if needed, including later ones", async () => {
  const { run_id, trainer } = await openDelivery(api.scope);
  const now = Date.now() + HOUR;
  await inTrainer(run_id, (object) => {
    object.now = () => now;
  });
  const heard: number[] = [];
  listenOnly(run_id, (snapshot) => {
    heard.push(snapshot.epoch);
    if (heard.length === 1) throw new Error("gone");
    return { acked_step: snapshot.acked_step };
  });
  const me = { trainer_id: "t", kind: "test", last_acked: null };
  await trainer.register(me);
  await expect.poll(() => heard.length).toBe(1);
  await inTrainer(run_id, (object) => object.alarm());
  await expect.poll(() => heard.length).toBe(2);
  await trainer.register(me);
  await expect.poll(() => heard.length).toBe(3);
  await inTrainer(run_id, (object) => object.alarm());
  expect(heard).toEqual([1, 1, 2]);
});

test("a grant or a change stores an alarm, for the lease's end and for a lost report", async () => {
  const { run_id, trainer } = await openDelivery(api.scope);
  const now = Date.now() + HOUR;
  const alarmAt = () => inTrainer(run_id, (_, { storage }) => storage.getAlarm());
  await inTrainer(run_id, (object) => {
    object.now = () => now;
  });
  listenOnly(run_id, ({ acked_step }) => ({ acked_step }));
  const { ready } = await storeBatch(api.scope, run_id, 1);
  await trainer.ready([ready], GOING);
  await trainer.register({ trainer_id: "t", kind: "test", last_acked: null });
  expect(await alarmAt()).toBe(now + 5000);
  // Until the acknowledgement of the run has arrived.
  await vi.waitUntil(async () => {
    await inTrainer(run_id, async (object, { storage }) => {
      await storage.deleteAlarm();
      await object.alarm();
    });
    return (await alarmAt()) === null;
  });
  const leased = await trainer.lease({ trainer_id: "t", epoch: 1, want_step: 1, max_wait_s: 0, ttl_s: 2 });
  expect(leased).toMatchObject({ ok: true, value: { lease: { attempt: 1 } } });
  expect(await alarmAt()).toBe(now + 2000);
});

test("grants and acknowledgements are still there after the object was evicted from memory", async () => {
  const { run_id, trainer } = await openDelivery(api.scope);
  const { ready, manifest } = await storeBatch(api.scope, run_id, 1);
  await trainer.ready([ready], GOING);
  await trainer.register({ trainer_id: "t", kind: "test", last_acked: null });
  const asked = { trainer_id: "t", epoch: 1, want_step: 1, max_wait_s: 0 };
  const first = await trainer.lease(asked);
  await inTrainer(run_id, (_, state) => state.abort("dropped")).catch(() => null);
  const again = env.TRAINER.getByName(`org/${api.scope.orgId}/${api.scope.projectId}/${run_id}`);
  const second: unknown = await inside(again, TrainerObject, (object) => object.lease(asked));
  expect(second).toEqual(first);
  expect(await inside(again, TrainerObject, (object) => object.batch(1))).toMatchObject({
    ...{ state: "leased", batch_id: manifest.batch_id },
  });
});

test("an object that was never created answers unknown and stores nothing", async () => {
  const { run_id } = await openDelivery(api.scope);
  const nobody = `${run_id.slice(0, -1)}${run_id.endsWith("x") ? "y" : "x"}`;
  const kept = await inTrainer(nobody, async (object, { storage }) => {
    const lease = { trainer_id: "t", epoch: 1, want_step: 1, max_wait_s: 0 };
    expect(await object.lease(lease)).toEqual({ ok: false, refusal: { code: "unknown" } });
    expect([await object.ready([], GOING), object.weightVersions(), await object.batch(1)]).toEqual([
      ...[null, null, null],
    ]);
    expect(await object.revive(1)).toBe(false);
    await object.alarm();
    return [...storage.kv.list()].length;
  });
  expect(kept).toBe(0);
});
