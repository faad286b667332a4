import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { EndpointView } from "../../../src/contract/endpoint.ts";
import { EvalRequest } from "../../../src/contract/eval-request.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { getRun, updateRun } from "../../../src/kernel/db/runs.ts";
import { acceptRun } from "../../../src/kernel/service/accept-run.ts";
import { acceptedOnly } from "../hand-made.ts";
import { openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";
import { everythingStored } from "../stored.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const one = { environment: "gsm8k", dataset: questions(1) };

async function create(request: object): Promise<EndpointView> {
  const defaults = { base_url: env.MODEL_URL, probe: false };
  const reply = await api.post("/v1/endpoints", { ...defaults, ...request });
  expect(reply.status).toBe(201);
  return EndpointView.parse(await reply.json());
}

const change = (nameOrId: string, patch: object) =>
  api.ask(`/v1/endpoints/${nameOrId}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(patch),
  });

test("a run names its endpoint, by name or id, and shows it without its key", async () => {
  const api_key = "sk-named-0123456789";
  const { id } = await create({ name: "named", api_key });
  for (const endpoint of ["named", id]) {
    const model = script(RIGHT);
    const run = await api.finish({ ...one, model, endpoint });
    const shown = { id, name: "named", base_url: env.MODEL_URL, api_key_last4: "6789" };
    expect(run).toMatchObject({ status: "completed", endpoint: shown });
    expect((await requestsOf(model))[0]?.authorization).toBe(`Bearer ${api_key}`);
  }
});

test("an endpoint's max_concurrent caps that of a run, which shows the resulting number", async () => {
  await create({ name: "narrow", max_concurrent: 3 });
  const started = (max_concurrent: number) =>
    api.start({ ...one, model: script(RIGHT), endpoint: "narrow", max_concurrent });
  expect((await started(10)).max_concurrent).toBe(3);
  expect((await started(2)).max_concurrent).toBe(2);
});

test("a changed key is used by later runs", async () => {
  await create({ name: "rotated", api_key: "sk-old-0123456789" });
  await api.finish({ ...one, model: script(RIGHT), endpoint: "rotated" });
  expect((await change("rotated", { api_key: "sk-new-0123456789" })).status).toBe(200);
  const model = script(RIGHT);
  await api.finish({ ...one, model, endpoint: "rotated" });
  expect((await requestsOf(model))[0]?.authorization).toBe("Bearer sk-new-0123456789");
});

test("an endpoint that an unfinished run uses cannot be deleted; afterwards it can", async () => {
  const { id } = await create({ name: "used", api_key: "sk-used-0123456789" });
  const { id: template } = await api.finish({ ...one, model: script(RIGHT) });
  const run = await acceptedOnly(api, template, { endpoint_id: id });
  const refused = await api.ask("/v1/endpoints/used", { method: "DELETE" });
  expect(refused.status).toBe(409);
  const { error } = await refused.json<{ error: { code: string; message: string } }>();
  expect(error).toMatchObject({ code: "conflict", message: expect.stringContaining(run.id) });
  await updateRun(databaseOf(env), api.scope, run.id, { status: "cancelled" });
  const deleted = await api.ask("/v1/endpoints/used", { method: "DELETE" });
  expect(await deleted.json()).toEqual({ object: "endpoint", id, deleted: true });
  const row = await env.DB.prepare("select name, sealed_key from endpoints where id = ?").bind(id);
  expect(await row.first()).toEqual({ name: null, sealed_key: null });
  expect((await api.run(run.id)).endpoint).toMatchObject({ id, name: null });
  for (const endpoint of ["used", id]) {
    const reply = await api.post("/v1/runs", { ...one, model: "m", endpoint });
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ error: { code: "not_found", param: "endpoint" } });
  }
});

test("an endpoint may be deleted as soon as its runs have ended, even if the list of runs is not updated yet", async () => {
  const { id } = await create({ name: "brief" });
  const { id: run } = await api.finish({ ...one, model: script(RIGHT), endpoint: "brief" });
  // The state before the run's end is written to D1.
  await updateRun(databaseOf(env), api.scope, run, { status: "running", finished_at: null });
  const deleted = await api.ask("/v1/endpoints/brief", { method: "DELETE" });
  expect(await deleted.json()).toEqual({ object: "endpoint", id, deleted: true });
  const stored = await getRun(databaseOf(env), api.scope, run);
  expect(stored?.run).toMatchObject({ status: "completed", counts: { scored: 1 } });
});

test("an endpoint of another project, and one given with a run, cannot be named", async () => {
  const theirs = await openPlatform();
  const made = { name: "theirs", base_url: env.MODEL_URL, probe: false };
  const { id } = await (await theirs.post("/v1/endpoints", made)).json<{ id: string }>();
  const inline = await api.finish({ ...one, model: script(RIGHT) });
  for (const endpoint of ["theirs", id, inline.endpoint?.id]) {
    const reply = await api.post("/v1/runs", { ...one, model: "m", endpoint });
    expect(await reply.json()).toMatchObject({ error: { code: "not_found", param: "endpoint" } });
  }
});

test("a deployment refuses a run whose own endpoint is in its network", async () => {
  const deployed = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
  const endpoint = { base_url: "http://[::ffff:127.0.0.1]:8000/v1" };
  const request = EvalRequest.parse({ ...one, model: "m", endpoint });
  const options = { idempotencyKey: null, requestHash: "", now: Date.now() };
  expect(await acceptRun(deployed, api.scope, request, options)).toMatchObject({
    ok: false,
    error: { code: "url_not_allowed", param: "endpoint.base_url" },
  });
});

test("a key is never stored in plain text: not after a run, a refused key, or a probe that repeats it", async () => {
  const printed: unknown[] = [];
  for (const name of ["log", "info", "warn", "error", "debug"] as const) {
    vi.spyOn(console, name).mockImplementation((...line) => void printed.push(line));
  }
  const key = `sk-${crypto.randomUUID()}`;
  const body = { error: { message: "Incorrect API key provided: {authorization}" } };
  const refusing = script([{ fault: { kind: "status", status: 401, body } }]);
  const request = { base_url: env.MODEL_URL, api_key: key, model: refusing };
  const key1 = { "idempotency-key": crypto.randomUUID() };
  const created = await api.post("/v1/endpoints", { name: "leaky", ...request }, key1);
  const replies = [await created.text()];
  expect(JSON.parse(replies[0] ?? "")).toMatchObject({
    capabilities: { error: "401: the API key was rejected: Incorrect API key provided: Bearer [key]" },
  });
  const right = await api.finish({ ...one, model: script(RIGHT), endpoint: "leaky" });
  const wrong = await api.finish({ ...one, model: refusing, endpoint: "leaky" });
  const inline = { base_url: env.MODEL_URL, api_key: key };
  const given = await api.finish({ ...one, model: refusing, endpoint: inline });
  expect(wrong).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  for (const path of ["endpoints", "endpoints/leaky", "runs", `runs/${wrong.id}/results`]) {
    replies.push(await text(await api.ask(`/v1/${path}`)));
  }
  const stored = await everythingStored(api, [right, wrong, given]);
  for (const found of [...stored, ...replies, JSON.stringify(printed)]) {
    expect(found).not.toContain(key);
  }
  // Proves that the search finds what is there.
  expect(stored.filter((found) => found.includes(wrong.id)).length).toBeGreaterThanOrEqual(3);
});

/** Not text(): the runtime warns if the content type is not known to be text. */
async function text(reply: Response): Promise<string> {
  return new TextDecoder().decode(await reply.arrayBuffer());
}
