import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { EndpointRequest, type EndpointView } from "../../../src/contract/endpoint.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { findEndpoint, type NamedEndpoint } from "../../../src/kernel/db/endpoints.ts";
import { sealContext, unseal } from "../../../src/kernel/kit/secrets.ts";
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  probeEndpoint,
} from "../../../src/kernel/service/endpoints.ts";
import { script } from "../script.ts";
import { overtaken } from "./overtaken.ts";
import { openTestApi, type TestApi } from "./test-api.ts";

const KEY = "sk-ab12cd34ef56";
/** No server listens there, and the address needs no resolver. */
const NOBODY = "http://127.0.0.1:9/v1";
const REQUEST = { name: "qwen", base_url: NOBODY, api_key: KEY, probe: false };

const open = () => openTestApi({ createEndpoint, changeEndpoint, probeEndpoint, deleteEndpoint });

function patch({ ask }: TestApi, nameOrId: string, body: object): Promise<Response> {
  return ask(`/v1/endpoints/${nameOrId}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function created(api: TestApi, request: object = {}): Promise<EndpointView> {
  const reply = await api.post("/v1/endpoints", { ...REQUEST, ...request });
  if (reply.status !== 201) throw new Error(await reply.text());
  return reply.json();
}

async function errorOf(reply: Response): Promise<object> {
  const { error } = await reply.json<{ error: object }>();
  return { status: reply.status, ...error };
}

async function stored(scope: Scope, nameOrId: string): Promise<NamedEndpoint> {
  const endpoint = await findEndpoint(databaseOf(env), scope, nameOrId);
  if (endpoint === null) throw new Error(`no endpoint ${nameOrId}`);
  return endpoint;
}

const sealedKey = (id: string) =>
  env.DB.prepare("select sealed_key from endpoints where id = ?").bind(id).first<string>("sealed_key");

test("an endpoint is created with 201, its location, and only the last characters of its key", async () => {
  const api = await open();
  const prices = { input_per_mtok_micros: 150_000, output_per_mtok_micros: 600_000 };
  const request = { ...REQUEST, max_concurrent: 256, rpm: 90, prices };
  const reply = await api.post("/v1/endpoints", request);
  expect(reply.status).toBe(201);
  const endpoint = await reply.json<EndpointView>();
  const now = api.clock.now / 1000;
  expect(endpoint).toEqual({
    object: "endpoint",
    id: expect.stringMatching(/^ep_/),
    name: "qwen",
    base_url: REQUEST.base_url,
    api_key_last4: "ef56",
    max_concurrent: 256,
    rpm: 90,
    prices,
    refuses: [],
    silence_limit_s: null,
    capabilities: null,
    created_at: now,
    updated_at: now,
  });
  expect(reply.headers.get("location")).toBe(`/v1/endpoints/${endpoint.id}`);
  for (const path of ["qwen", endpoint.id]) {
    expect(await (await api.ask(`/v1/endpoints/${path}`)).json()).toEqual(endpoint);
  }
  const sealed = (await sealedKey(endpoint.id)) ?? "";
  const opened = (scope: Scope, id: string) => unseal(env, sealed, sealContext(scope, id));
  expect(await opened(api.scope, endpoint.id)).toBe(KEY);
  await expect(opened({ ...api.scope, orgId: "org_other" }, endpoint.id)).rejects.toThrow();
  await expect(opened({ ...api.scope, projectId: "pj_other" }, endpoint.id)).rejects.toThrow();
  await expect(opened(api.scope, "ep_other")).rejects.toThrow();
});

test("creation probes the server once", async () => {
  const api = await open();
  const model = script([{ content: "Hi", token_ids: [1, 2], logprobs: [-1, -2] }]);
  const request = { base_url: env.MODEL_URL, probe: true, model };
  const { capabilities } = await created(api, request);
  expect(capabilities).toMatchObject({
    probed_model: model,
    chat: true,
    token_ids: true,
    logprobs: true,
    tools: true,
    error: null,
    checked_at: api.clock.now / 1000,
  });
});

test("an endpoint is created even if its server is off; a later probe finds it on", async () => {
  const api = await open();
  const { id, capabilities } = await created(api, { probe: true });
  expect(capabilities).toMatchObject({
    chat: false,
    error: expect.stringMatching(/^not reachable/),
  });
  const moved = await patch(api, id, { base_url: env.MODEL_URL, api_key: null });
  const after = await moved.json<EndpointView>();
  expect(after.capabilities?.error).not.toMatch(/not reachable/);
  api.clock.now += 60_000;
  const probed = await api.ask(`/v1/endpoints/${id}/probe`, { method: "POST" });
  expect(probed.status).toBe(200);
  const { capabilities: again, updated_at } = await probed.json<EndpointView>();
  expect(again?.checked_at).toBe(api.clock.now / 1000);
  expect(updated_at).toBe(after.updated_at);
});

test("a taken name is a conflict, also for two simultaneous requests, and in a patch", async () => {
  const api = await open();
  const replies = await Promise.all([1, 2, 3].map(() => api.post("/v1/endpoints", REQUEST)));
  expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
  const taken = { status: 409, code: "conflict", param: "name" };
  expect(await errorOf(await api.post("/v1/endpoints", REQUEST))).toMatchObject(taken);
  await created(api, { name: "other" });
  expect(await errorOf(await patch(api, "other", { name: "qwen" }))).toMatchObject(taken);
  expect((await patch(api, "other", { name: "other" })).status).toBe(200);
  await created(await open());
});

test("a repeat of an Idempotency-Key returns the same endpoint, and another body is refused", async () => {
  const api = await open();
  const key = { "idempotency-key": "k" };
  const [one, two] = await Promise.all([1, 2].map(() => api.post("/v1/endpoints", REQUEST, key)));
  const ids = [await one?.json<EndpointView>(), await two?.json<EndpointView>()];
  expect(ids[0]?.id).toBe(ids[1]?.id);
  const again = await api.post("/v1/endpoints", REQUEST, key);
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
  const other = await api.post("/v1/endpoints", { ...REQUEST, api_key: "sk-another" }, key);
  expect(await errorOf(other)).toMatchObject({ status: 422, code: "idempotency_conflict" });
  await api.ask("/v1/endpoints/qwen", { method: "DELETE" });
  const gone = await api.post("/v1/endpoints", REQUEST, key);
  expect(await errorOf(gone)).toMatchObject({ status: 409, code: "conflict", param: null });
});

test("a repeat that arrives while the first request is running returns the same endpoint, not a conflict", async () => {
  const { scope, clock } = await open();
  const options = { idempotencyKey: "k", requestHash: "same", now: clock.now };
  const request = EndpointRequest.parse(REQUEST);
  const first = () => createEndpoint(env, scope, request, options);
  const DB = overtaken(env.DB, /from "endpoints"/, first);
  const second = await createEndpoint({ ...env, DB }, scope, request, options);
  expect(second).toMatchObject({ ok: true, value: { replayed: true, value: { name: "qwen" } } });
});

test("two simultaneous changes cannot combine a key with an address that it was not given for", async () => {
  const api = await open();
  const { scope, clock } = api;
  const { id } = await created(api);
  const moved = { base_url: "http://127.0.0.2:9/v1", api_key: null };
  const DB = overtaken(env.DB, /^update/, () => patch(api, id, moved));
  const late = await changeEndpoint({ ...env, DB }, scope, await stored(scope, id), { rpm: 5 }, clock.now);
  expect(late).toMatchObject({ ok: false, error: { code: "conflict", param: null } });
  expect(await sealedKey(id)).toBeNull();
  const keyed = overtaken(env.DB, /^update/, () => patch(api, id, { api_key: KEY }));
  const elsewhere = { base_url: "http://127.0.0.3:9/v1" };
  const move = await changeEndpoint({ ...env, DB: keyed }, scope, await stored(scope, id), elsewhere, clock.now);
  expect(move).toMatchObject({ ok: false, error: { code: "conflict" } });
  const endpoint = await (await api.ask(`/v1/endpoints/${id}`)).json();
  expect(endpoint).toMatchObject({ base_url: moved.base_url, api_key_last4: "ef56", rpm: null });
});

test("a probe that is overtaken by a change keeps the result of the change", async () => {
  const api = await open();
  const { id } = await created(api);
  const DB = overtaken(env.DB, /^update/, () => patch(api, id, { api_key: null }));
  const probed = await probeEndpoint({ ...env, DB }, api.scope, id, api.clock.now + 60_000);
  expect(probed).toMatchObject({ ok: false, error: { code: "conflict" } });
  const { capabilities } = await (await api.ask(`/v1/endpoints/${id}`)).json<EndpointView>();
  expect(capabilities?.checked_at).toBe(api.clock.now / 1000);
  const gone = overtaken(env.DB, /^update/, () => api.ask(`/v1/endpoints/${id}`, { method: "DELETE" }));
  const before = await stored(api.scope, id);
  const late = await changeEndpoint({ ...env, DB: gone }, api.scope, before, { rpm: 5 }, 0);
  expect(late).toMatchObject({ ok: false, error: { code: "not_found" } });
});

test("a patch changes only the fields it has, and null removes the key", async () => {
  const api = await open();
  const before = await created(api, { max_concurrent: 8, rpm: 60 });
  api.clock.now += 5000;
  const changed = await (await patch(api, "qwen", { max_concurrent: null })).json();
  const updated_at = before.updated_at + 5;
  expect(changed).toEqual({ ...before, max_concurrent: null, updated_at });
  expect(await sealedKey(before.id)).not.toBeNull();
  const bare = await (await patch(api, before.id, { api_key: null, name: "bare" })).json();
  expect(bare).toMatchObject({ name: "bare", api_key_last4: null, rpm: 60 });
  expect(await sealedKey(before.id)).toBeNull();
  expect(bare).toMatchObject({ capabilities: { error: expect.any(String) } });
  expect((await api.ask("/v1/endpoints/qwen")).status).toBe(404);
});

test("a stored key is not sent to another server when the endpoint moves", async () => {
  const api = await open();
  await created(api);
  const moved = await patch(api, "qwen", { base_url: "http://127.0.0.2:9/v1" });
  expect(await errorOf(moved)).toMatchObject({ status: 400, param: "api_key" });
  const path = await patch(api, "qwen", { base_url: "http://127.0.0.1:9/openai/v1" });
  expect(path.status).toBe(200);
});

test("endpoints are listed in pages, newest first, without inline ones and those of others", async () => {
  const api = await open();
  await created(await open());
  const made: string[] = [];
  for (const name of ["a", "b", "c"]) {
    api.clock.now += 1;
    made.push((await created(api, { name })).id);
  }
  const page = await (await api.ask("/v1/endpoints?limit=2")).json<{ data: EndpointView[] }>();
  expect(page).toMatchObject({
    object: "list",
    first_id: made[2],
    last_id: made[1],
    has_more: true,
  });
  const next = await (await api.ask(`/v1/endpoints?after=${made[1]}&order=desc`)).json();
  expect(next).toMatchObject({ first_id: made[0], last_id: made[0], has_more: false });
  const bad = await api.ask("/v1/endpoints?after=ep_nobody");
  expect(await errorOf(bad)).toMatchObject({ status: 400, param: "after" });
});

test("a deleted endpoint is gone, and its name can be used again", async () => {
  const api = await open();
  const { id } = await created(api);
  const reply = await api.ask("/v1/endpoints/qwen", { method: "DELETE" });
  expect(await reply.json()).toEqual({ object: "endpoint", id, deleted: true });
  for (const [method, path] of [
    ["GET", id],
    ["DELETE", id],
    ["DELETE", "qwen"],
    ["POST", `${id}/probe`],
  ] as const) {
    expect(await errorOf(await api.ask(`/v1/endpoints/${path}`, { method }))).toMatchObject({
      status: 404,
      code: "not_found",
      param: "id",
    });
  }
  expect((await patch(api, id, { rpm: 1 })).status).toBe(404);
  expect((await created(api)).id).not.toBe(id);
});

test("an endpoint of another project is not found", async () => {
  const [mine, theirs] = [await open(), await open()];
  const { id } = await created(theirs);
  for (const path of [id, "qwen"]) {
    expect((await mine.ask(`/v1/endpoints/${path}`)).status).toBe(404);
    expect((await mine.ask(`/v1/endpoints/${path}`, { method: "DELETE" })).status).toBe(404);
    expect((await patch(mine, path, { rpm: 1 })).status).toBe(404);
  }
});

test.each([
  ["a name that looks like an id", { name: "ep_mine" }, "invalid_request", "name"],
  ["a name with a slash", { name: "a/b" }, "invalid_request", "name"],
  ["a key that is no header", { api_key: "two words" }, "invalid_request", "api_key"],
  ["an address with a password", { base_url: "https://u:p@gpu.example/v1" }, "invalid_request", "base_url"],
  ["a misspelt field", { max_concurent: 3 }, "unknown_field", "max_concurent"],
  [
    "a price that is no whole number",
    { prices: { input_per_mtok_micros: 1.5, output_per_mtok_micros: 1 } },
    "invalid_request",
    "prices.input_per_mtok_micros",
  ],
])("%s is refused, naming the field", async (_what, change, code, param) => {
  const { post } = await open();
  const reply = await post("/v1/endpoints", { ...REQUEST, ...change });
  expect(await errorOf(reply)).toMatchObject({ status: 400, code, param });
});

test("a deployment refuses addresses of its own network, and the local platform accepts them", async () => {
  const deployed = { ...env, ALLOW_PRIVATE_ENDPOINTS: "false" };
  const { scope, clock } = await open();
  const options = { idempotencyKey: null, requestHash: "", now: clock.now };
  const request = EndpointRequest.parse({ ...REQUEST, base_url: "http://169.254.169.254/v1" });
  const refused = { ok: false, error: { code: "url_not_allowed", param: "base_url" } };
  expect(await createEndpoint(deployed, scope, request, options)).toMatchObject(refused);
  const made = await createEndpoint(env, scope, request, options);
  expect(made.ok).toBe(true);
  const change = { base_url: "http://[::1]/v1", api_key: null };
  const changed = await changeEndpoint(deployed, scope, await stored(scope, "qwen"), change, clock.now);
  expect(changed).toMatchObject(refused);
});
