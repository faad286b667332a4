/** A trainer over HTTP: every route of the Worker, with the token of its run. */
import { beforeAll, expect, test } from "vitest";
import { Acked, Leased, Registered } from "../../../src/contract/trainer-wire.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { type Delivery, digest, GOING, openDelivery, storeBatch, unzipped } from "../trainer-batch.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** Requests of a trainer with a token of its own. */
function asTrainer({ run_id, token }: Delivery) {
  const headers = { authorization: `Bearer ${token}` };
  const get = (path: string, more = {}) => api.ask(`/v1/runs/${run_id}/${path}`, { headers: { ...headers, ...more } });
  const post = (path: string, body: object) => api.post(path, body, headers);
  const run = (path: string, body: object) => post(`/v1/runs/${run_id}/${path}`, body);
  return { get, post, run };
}

const ME = { trainer_id: "t0", kind: "test", protocol: "rl.batch/1" };
const LEASE = { trainer_id: "t0", epoch: 1, want_step: 1, max_wait_s: 0 };

async function bodyOf(reply: Response): Promise<{ error: Record<string, unknown> }> {
  return await reply.json();
}

test("a trainer registers, waits for a batch, keeps its lease, trains, and reports its weights", async () => {
  const delivery = await openDelivery(api.scope);
  const { run, post } = asTrainer(delivery);
  const registered = Registered.parse(await (await run("trainer/register", ME)).json());
  expect(registered).toEqual({
    ...{ epoch: 1, next_step: 1, published: 0, delivery: "pull", max_steps: 9 },
  });
  const waiting = run("trainer/lease", { ...LEASE, max_wait_s: 20 });
  const { ready, manifest } = await storeBatch(api.scope, delivery.run_id, 1);
  await delivery.trainer.ready([ready], GOING);
  const { lease, manifest: leased } = Leased.parse(await (await waiting).json());
  expect(leased).toEqual(manifest);
  const proof = { token: lease.token, epoch: 1 };
  const progress = { phase: "train", done: 1, total: 2 };
  const kept = await post(`/v1/leases/${lease.id}/heartbeat`, { ...proof, progress });
  expect(kept.status).toBe(200);
  const { batch_id, sha256 } = manifest;
  const done = { ...proof, batch_id, sha256, produced_version: 1, metrics: { loss: 0.5 } };
  const acked = Acked.parse(await (await post(`/v1/leases/${lease.id}/ack`, done)).json());
  expect(acked).toEqual({ batch_id, step: 1, next_step: 2, published: 0 });
  expect(await (await post(`/v1/leases/${lease.id}/ack`, done)).json()).toEqual(acked);
  const told = { version: 1, epoch: 1, replica: "gpu-0", label: "step_1" };
  await run("weight-versions", { ...told, state: "published" });
  const applied = await (await run("weight-versions", { ...told, state: "applied" })).json();
  expect(applied).toMatchObject({
    ...{ published: 1, applied: { min: 1, max: 1, by_replica: { "gpu-0": 1 } } },
    versions: [{ version: 1, state: "applied", label: "step_1" }],
  });
  expect(await (await asTrainer(delivery).get("weight-versions")).json()).toEqual(applied);
  expect((await delivery.trainer.snapshot({ acked_step: 0 }))?.acks).toMatchObject([
    { step: 1, produced_version: 1, metrics: { loss: 0.5 } },
  ]);
});

test("without a batch a lease request is answered 204 with what the run waits for, and after its end 410", async () => {
  const delivery = await openDelivery(api.scope);
  const { run } = asTrainer(delivery);
  await run("trainer/register", ME);
  const none = await run("trainer/lease", LEASE);
  expect([none.status, none.headers.get("x-queue-state")]).toEqual([204, "waiting_for_rollouts"]);
  await delivery.trainer.ready([], { ...GOING, paused: true });
  const paused = await run("trainer/lease", LEASE);
  expect(paused.headers.get("x-queue-state")).toBe("paused");
  expect(paused.headers.get("retry-after")).toBe("5");
  const waiting = run("trainer/lease", { ...LEASE, max_wait_s: 20 });
  await delivery.trainer.ready([], { ...GOING, ended: true });
  const over = await waiting;
  expect([over.status, (await bodyOf(over)).error["code"]]).toEqual([410, "run_finished"]);
});

test("refusals say how to continue: the next step, the epoch, the published version", async () => {
  const delivery = await openDelivery(api.scope);
  const { run, post } = asTrainer(delivery);
  const { ready, manifest } = await storeBatch(api.scope, delivery.run_id, 1);
  await delivery.trainer.ready([ready], GOING);
  await run("trainer/register", ME);
  const errorOf = async (reply: Response) => ({
    status: reply.status,
    ...(await bodyOf(reply)).error,
  });
  expect(await errorOf(await run("trainer/lease", { ...LEASE, want_step: 4 }))).toMatchObject({
    ...{ status: 409, code: "step_mismatch", param: "want_step", next_step: 1 },
  });
  const { lease } = Leased.parse(await (await run("trainer/lease", LEASE)).json());
  const { batch_id, sha256 } = manifest;
  const done = { token: lease.token, epoch: 1, batch_id, sha256, produced_version: 1 };
  const ack = `/v1/leases/${lease.id}/ack`;
  expect(await errorOf(await post(ack, { ...done, token: "guessed" }))).toMatchObject({
    ...{ status: 403, code: "wrong_lease_token", param: "token" },
  });
  expect(await errorOf(await post(ack, { ...done, batch_id: "bat_other" }))).toMatchObject({
    ...{ status: 409, code: "wrong_batch", param: "batch_id" },
  });
  const early = { version: 1, state: "applied", epoch: 1, replica: "gpu-0" };
  expect(await errorOf(await run("weight-versions", early))).toMatchObject({
    ...{ status: 409, code: "version_ahead", param: "version", next_step: 1 },
  });
  expect(await errorOf(await post(ack, { ...done, sha256: "0".repeat(64) }))).toMatchObject({
    ...{ status: 409, code: "conflict", param: "sha256" },
  });
  expect((await post(ack, done)).status).toBe(200);
  await run("weight-versions", { version: 1, state: "published", epoch: 1 });
  expect(await errorOf(await run("trainer/register", { ...ME, version: 0 }))).toMatchObject({
    ...{ status: 409, code: "conflict", param: "version", published: 1 },
  });
  expect((await run("trainer/register", { ...ME, version: 0, reset_to: 0 })).status).toBe(200);
  expect(await errorOf(await run("trainer/lease", LEASE))).toMatchObject({
    ...{ status: 409, code: "epoch_fenced", param: "epoch", epoch: 2 },
  });
  const nack = { token: lease.token, epoch: 2, reason: "oom", retryable: true };
  expect(await errorOf(await post("/v1/leases/ls_nobody/nack", nack))).toMatchObject({
    ...{ status: 404, code: "not_found", param: "id" },
  });
  expect(await errorOf(await post(`/v1/leases/${lease.id}/nack`, nack))).toMatchObject({
    code: "lease_lost",
  });
});

test("a loss that became NaN is null, named in the reply and reported to the run; NaN anywhere else is invalid JSON", async () => {
  const delivery = await openDelivery(api.scope);
  const { run } = asTrainer(delivery);
  const { ready, manifest } = await storeBatch(api.scope, delivery.run_id, 1);
  await delivery.trainer.ready([ready], GOING);
  await run("trainer/register", ME);
  const { lease } = Leased.parse(await (await run("trainer/lease", LEASE)).json());
  const { batch_id, sha256 } = manifest;
  const ack = (metrics: string, version = "1") =>
    api.ask(`/v1/leases/${lease.id}/ack`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${delivery.token}`,
        "content-type": "application/json",
      },
      body: `{"token": "${lease.token}", "epoch": 1, "batch_id": "${batch_id}", "sha256": "${sha256}",
        "produced_version": ${version}, "metrics": ${metrics}}`,
    });
  expect((await ack('{"loss": NaN}', "NaN")).status).toBe(400);
  const names = Array.from({ length: 201 }, (_, at) => `"m${at}": NaN`);
  const many = await ack(`{${names.join(",")}}`);
  expect([many.status, (await bodyOf(many)).error["param"]]).toEqual([400, "metrics"]);
  const long = await ack(`{"${"m".repeat(101)}": NaN}`);
  expect([long.status, (await bodyOf(long)).error["code"]]).toEqual([400, "invalid_request"]);
  const acked = await ack('{"loss": NaN, "grad_norm": Infinity, "entropy": 0.5}');
  const not_finite = ["loss", "grad_norm"];
  expect([acked.status, await acked.json()]).toMatchObject([200, { step: 1, not_finite }]);
  expect((await delivery.trainer.snapshot({ acked_step: 0 }))?.acks).toMatchObject([
    { step: 1, metrics: { loss: null, grad_norm: null, entropy: 0.5 }, not_finite },
  ]);
});

test("a batch is read as it is stored: its manifest, objects by digest, credits, and all rows as one stream", async () => {
  const delivery = await openDelivery(api.scope);
  const { get } = asTrainer(delivery);
  const { ready, manifest, objects } = await storeBatch(api.scope, delivery.run_id, 1, [3, 5, 4]);
  expect((await get("batches/1")).status).toBe(404);
  await delivery.trainer.ready([ready], GOING);
  expect(await (await get("batches/1")).json()).toEqual(manifest);
  const credits = await (await get("batches/1/credits")).arrayBuffer();
  expect(await digest(new Uint8Array(credits))).toBe(manifest.credits.sha256);
  for (const { sha256, bytes } of manifest.objects) {
    const reply = await get(`batches/1/objects/${sha256}`);
    expect([reply.headers.get("etag"), reply.headers.get("content-length")]).toEqual([`"${sha256}"`, `${bytes}`]);
    expect(await digest(new Uint8Array(await reply.arrayBuffer()))).toBe(sha256);
  }
  const stream = await get("batches/1/stream");
  const joined = new Uint8Array(await new Blob(objects).arrayBuffer());
  expect(new Uint8Array(await stream.arrayBuffer())).toEqual(joined);
  expect((await get(`batches/1/objects/${"0".repeat(64)}`)).status).toBe(404);
});

test("a batch can be read before its lease, waited for until it is built, and is void after a reset to before it", async () => {
  const delivery = await openDelivery(api.scope);
  const { get, run, post } = asTrainer(delivery);
  const [first, second] = [
    await storeBatch(api.scope, delivery.run_id, 1),
    await storeBatch(api.scope, delivery.run_id, 2),
  ];
  await delivery.trainer.ready([first.ready], GOING);
  await run("trainer/register", ME);
  const { lease } = Leased.parse(await (await run("trainer/lease", LEASE)).json());
  const ahead = get("batches/2?max_wait_s=20");
  await delivery.trainer.ready([second.ready], GOING);
  expect(await (await ahead).json()).toEqual(second.manifest);
  expect((await get("batches/2/stream")).status).toBe(200);
  expect((await delivery.trainer.batch(2))?.state).toBe("ready");
  expect((await get("batches/10?max_wait_s=20")).status).toBe(404);

  const { batch_id, sha256 } = first.manifest;
  const done = { token: lease.token, epoch: 1, batch_id, sha256, produced_version: 1 };
  expect((await post(`/v1/leases/${lease.id}/ack`, { ...done, published: {} })).status).toBe(200);
  await run("trainer/register", { ...ME, version: 0, reset_to: 0 });
  for (const part of ["", "/stream", "/credits", `/objects/${"0".repeat(64)}`]) {
    const reply = await get(`batches/2${part}`);
    const { error } = await bodyOf(reply);
    expect([reply.status, error["code"], error["param"]]).toEqual([409, "batch_void", "step"]);
  }
  const anew = get("batches/1?max_wait_s=20");
  const cut = { ...first.ready, generation: 1, batch_id: `${batch_id}_anew` };
  await delivery.trainer.ready([cut], GOING);
  expect((await anew).status).toBe(200);
  const [none, over] = [await get("batches/3"), get("batches/3?max_wait_s=20")];
  await delivery.trainer.ready([], { ...GOING, ended: true });
  expect([none.status, (await over).status]).toEqual([404, 404]);
});

test("an ack with its weights publishes them in the same write; with weights older than the published ones it is refused", async () => {
  const delivery = await openDelivery(api.scope);
  const { get, run, post } = asTrainer(delivery);
  const made = await Promise.all([1, 2].map((step) => storeBatch(api.scope, delivery.run_id, step)));
  await delivery.trainer.ready(
    made.map(({ ready }) => ready),
    GOING,
  );
  await run("trainer/register", ME);
  const acks: ((more: object) => Promise<Response>)[] = [];
  for (const [at, { manifest }] of made.entries()) {
    const want_step = at + 1;
    const leased = await run("trainer/lease", { ...LEASE, want_step });
    const { lease } = Leased.parse(await leased.json());
    const { batch_id, sha256 } = manifest;
    const done = { token: lease.token, epoch: 1, batch_id, sha256, produced_version: want_step };
    const ack = (more: object) => post(`/v1/leases/${lease.id}/ack`, { ...done, ...more });
    acks.push(ack);
    expect((await ack(at === 0 ? {} : { published: { label: "step_2" } })).status).toBe(200);
  }
  const [first, second] = acks;
  const weights = { published: 2, versions: [{ version: 2, label: "step_2", state: "published" }] };
  expect(await (await get("weight-versions")).json()).toMatchObject(weights);
  const again = Acked.parse(await (await second?.({ published: { label: "step_2" } }))?.json());
  expect(again).toMatchObject({ step: 2, next_step: 3, published: 2 });
  expect((await first?.({}))?.status).toBe(200);
  const older = await first?.({ published: {} });
  expect(older?.status).toBe(409);
  expect(await (await get("weight-versions")).json()).toMatchObject(weights);
});

test("an interrupted download continues with Range, and a known object is not sent again", async () => {
  const delivery = await openDelivery(api.scope);
  const { get } = asTrainer(delivery);
  const { ready, manifest, objects } = await storeBatch(api.scope, delivery.run_id, 1, [6]);
  await delivery.trainer.ready([ready], GOING);
  const [{ sha256 = "", bytes = 0 } = {}] = manifest.objects;
  const path = `batches/1/objects/${sha256}`;
  const rest = await get(path, { range: "bytes=10-" });
  expect([rest.status, rest.headers.get("content-range")]).toEqual([206, `bytes 10-${bytes - 1}/${bytes}`]);
  expect(new Uint8Array(await rest.arrayBuffer())).toEqual(objects[0]?.subarray(10));
  const tail = await get(path, { range: "bytes=-7" });
  expect((await tail.arrayBuffer()).byteLength).toBe(7);
  expect((await get(path, { range: `bytes=${bytes}-` })).status).toBe(416);
  expect((await get(path, { range: "pages=1-2" })).status).toBe(200);
  expect((await get(path, { "if-none-match": `"${sha256}"` })).status).toBe(304);
  const other = await get(`${path}?format=msgpack`);
  expect(other.status).toBe(200);
  expect((await unzipped(await other.arrayBuffer())).byteLength).toBeGreaterThan(0);
  const same = await get(`${path}?format=jsonl`);
  expect(new Uint8Array(await same.arrayBuffer())).toEqual(objects[0]);
});

test("a trainer's token is valid only for the trainer of its own run; a key of the project works too", async () => {
  const [mine, other] = [await openDelivery(api.scope), await openDelivery(api.scope)];
  const { get } = asTrainer(mine);
  const headers = { authorization: `Bearer ${mine.token}` };
  const status = async (reply: Promise<Response>) => (await reply).status;
  expect(await status(get("weight-versions"))).toBe(200);
  expect(await status(api.ask(`/v1/runs/${other.run_id}/weight-versions`, { headers }))).toBe(404);
  expect(await status(api.ask(`/v1/runs/${mine.run_id}`, { headers }))).toBe(403);
  expect(await status(api.post(`/v1/runs/${mine.run_id}/trainer/token`, {}, headers))).toBe(403);
  expect(await status(api.ask(`/v1/runs/${mine.run_id}/weight-versions`))).toBe(200);
  const guessed = { authorization: "Bearer rct_guessed" };
  expect(await status(api.ask("/v1/runs", { headers: guessed }))).toBe(401);
  const stranger = await openPlatform();
  expect(await status(stranger.ask(`/v1/runs/${mine.run_id}/weight-versions`))).toBe(404);
  expect(await status(stranger.ask(`/v1/runs/${mine.run_id}/batches/1`))).toBe(404);
  expect(await status(api.ask("/v1/runs/run_nobody/weight-versions"))).toBe(404);
});

test("errors name the wrong field", async () => {
  const { run } = asTrainer(await openDelivery(api.scope));
  const paramOf = async (path: string, body: object) => (await bodyOf(await run(path, body))).error["param"];
  expect(await paramOf("trainer/register", { ...ME, protocol: "rl.batch/2" })).toBe("protocol");
  expect(await paramOf("trainer/lease", { ...LEASE, max_wait_s: 61 })).toBe("max_wait_s");
  expect(await paramOf("weight-versions", { version: -1, state: "published", epoch: 1 })).toBe("version");
  expect(await paramOf("weight-versions", { version: 1, state: "retired", epoch: 1 })).toBe("state");
});
