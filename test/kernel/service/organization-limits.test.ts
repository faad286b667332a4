/** The limits of an organisation: runs in flight, storage, uploads. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ApiError } from "../../../src/contract/api-error.ts";
import type { OrganizationLimits } from "../../../src/contract/identity.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { insertRun } from "../../../src/kernel/db/runs.ts";
import { folderOf } from "../../../src/kernel/kit/names.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

/** Limits are cached for a minute, so they are set before the first request. */
async function limited(limits: Partial<OrganizationLimits>): Promise<TestApi> {
  const api = await openPlatform();
  await env.DB.prepare("update organizations set limits = ? where id = ?")
    .bind(JSON.stringify(limits), api.scope.orgId)
    .run();
  return api;
}

const request = () => ({ environment: "gsm8k", dataset: questions(1), endpoint: { base_url: env.MODEL_URL } });
const hanging = () => ({ ...request(), model: script([{ fault: { kind: "hang" } }]) });

async function refused(reply: Response): Promise<ApiError["error"]> {
  expect(reply.status).toBe(429);
  const { error } = ApiError.parse(await reply.json());
  expect(error).toMatchObject({ code: "rate_limited", param: null });
  return error;
}

test("an organisation has no more unfinished runs than its limit, and an ended run frees its place", async () => {
  const api = await limited({ runs_in_flight: 1 });
  const first = await api.start(hanging());
  const { message } = await refused(await api.post("/v1/runs", hanging()));
  expect(message).toContain("runs_in_flight");
  const beside = await openPlatform(api.scope.orgId);
  await refused(await beside.post("/v1/runs", hanging()));
  await api.post(`/v1/runs/${first.id}/cancel`, {});
  await api.ended(first.id);
  await expect.poll(async () => (await api.post("/v1/runs", hanging())).status).toBe(202);
});

test("of two simultaneous runs for one place only one is written, and the other leaves no endpoint", async () => {
  const { scope } = await openPlatform();
  const endpoints = [endpointRow(), endpointRow()] as const;
  const written = await Promise.all(
    endpoints.map((endpoint) =>
      insertRun(databaseOf(env), scope, runRow(endpoint), endpoint, [], { most: 1, alone: null }),
    ),
  );
  expect(written.toSorted()).toEqual(["full", "inserted"]);
  const left = await env.DB.prepare("select count(*) as n from endpoints where org_id = ?")
    .bind(scope.orgId)
    .first("n");
  expect(left).toBe(1);
});

test("a project that is being deleted accepts no run", async () => {
  const { scope } = await openPlatform();
  await env.DB.prepare("update projects set deleted_at = 1 where id = ?").bind(scope.projectId).run();
  const endpoint = endpointRow();
  expect(await insertRun(databaseOf(env), scope, runRow(endpoint), endpoint)).toBe("gone");
});

test("results of runs and uploads count towards the storage of an organisation, and beyond its limit nothing starts", async () => {
  const api = await limited({ storage_bytes: 10_000 });
  const { id } = await api.finish({ ...request(), dataset: questions(20), model: script(RIGHT) });
  const stored = () => env.DB.prepare("select stored_bytes as n from runs where id = ?").bind(id).first<number>("n");
  await expect.poll(stored).toBeGreaterThan(10_000);
  const beside = await openPlatform(api.scope.orgId);
  const upload = (to: TestApi) =>
    to.ask("/v1/datasets", {
      method: "POST",
      body: '{"question":"a"}\n',
      headers: { "content-type": "application/jsonl" },
    });
  // What it stores is read once a minute, so this test uses its own clock.
  const { uploadDataset } = await import("../../../src/kernel/service/upload-dataset.ts");
  const sent = { name: null, environment: null, environment_args: {} };
  const late = { idempotencyKey: null, now: Date.now() + 120_000 };
  const outcome = await uploadDataset(env, beside.scope, sent, new Blob(["{}"]).stream(), late);
  expect(outcome).toMatchObject({
    ok: false,
    error: { code: "rate_limited", message: expect.stringContaining("storage_bytes") },
  });
  const { message } = await refused(await upload(beside));
  expect(message).toContain("10000");
  await refused(await api.post("/v1/runs", { ...request(), model: script(RIGHT) }));
});

test("an organisation whose limit is no uploads is refused with that reason", async () => {
  const api = await limited({ uploads_at_once: 0 });
  const body = '{"question":"a"}\n';
  const reply = await api.ask("/v1/datasets", {
    method: "POST",
    body,
    headers: { "content-type": "application/jsonl" },
  });
  expect((await refused(reply)).message).toContain("uploads_at_once");
});

test("a refused run leaves no rows in the store, and no token for its trainer", async () => {
  const kept = async ({ scope }: TestApi) => {
    const { objects } = await env.STORE.list({ prefix: folderOf(scope) });
    const tokens = "select count(*) as n from trainer_tokens where org_id = ?";
    return [objects.length, await env.DB.prepare(tokens).bind(scope.orgId).first("n")];
  };
  const steps = { group_size: 2, batch_size: { rollouts: 2 }, max_steps: 1 };
  const training = { kind: "training", ...steps, trainer: { delivery: "pull" } };
  for (const limits of [{ storage_bytes: 0 }, { runs_in_flight: 0 }]) {
    const api = await limited(limits);
    await refused(await api.post("/v1/runs", hanging()));
    const model = script(["no"], undefined, { tokens: true });
    await refused(await api.post("/v1/runs", { ...request(), ...training, model }));
    expect(await kept(api)).toEqual([0, 0]);
  }
});
