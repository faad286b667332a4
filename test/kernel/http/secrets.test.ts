import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { SecretView } from "../../../src/contract/endpoint.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { sealContext, unseal } from "../../../src/kernel/kit/secrets.ts";
import { changeSecret, createSecret } from "../../../src/kernel/service/store-secret.ts";
import { openTestApi, type TestApi } from "./test-api.ts";

const REQUEST = { name: "SEARCH_KEY", value: "s3arch-value-0123" };

const open = () => openTestApi({ createSecret, changeSecret });

function patch({ ask }: TestApi, nameOrId: string, body: object): Promise<Response> {
  return ask(`/v1/secrets/${nameOrId}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function errorOf(reply: Response): Promise<object> {
  const { error } = await reply.json<{ error: object }>();
  return { status: reply.status, ...error };
}

async function storedValue({ scope }: TestApi, id: string): Promise<string> {
  const sealed = await env.DB.prepare("select sealed_value from secrets where id = ?")
    .bind(id)
    .first<string>("sealed_value");
  return unseal(env, sealed ?? "", sealContext(scope, id));
}

test("a secret is created with 201 and shown without its value, by name and by id", async () => {
  const api = await open();
  const reply = await api.post("/v1/secrets", REQUEST);
  expect(reply.status).toBe(201);
  const secret = await reply.json<SecretView>();
  const now = api.clock.now / 1000;
  expect(secret).toEqual({
    object: "secret",
    id: expect.stringMatching(/^sec_/),
    name: REQUEST.name,
    created_at: now,
    updated_at: now,
  });
  expect(reply.headers.get("location")).toBe(`/v1/secrets/${secret.id}`);
  for (const path of [secret.id, REQUEST.name]) {
    expect(await (await api.ask(`/v1/secrets/${path}`)).json()).toEqual(secret);
  }
  expect(await storedValue(api, secret.id)).toBe(REQUEST.value);
});

test("a taken name is a conflict that says how to change the value, and a patch changes it", async () => {
  const api = await open();
  const { id, created_at } = await (await api.post("/v1/secrets", REQUEST)).json<SecretView>();
  expect(await errorOf(await api.post("/v1/secrets", REQUEST))).toMatchObject({
    status: 409,
    code: "conflict",
    param: "name",
    message: expect.stringContaining("PATCH /v1/secrets/SEARCH_KEY"),
  });
  api.clock.now += 2000;
  const changed = await patch(api, REQUEST.name, { value: "another" });
  expect(await changed.json()).toMatchObject({ id, created_at, updated_at: created_at + 2 });
  expect(await storedValue(api, id)).toBe("another");
});

test("a repeat of an Idempotency-Key returns the same secret, and another value is refused", async () => {
  const api = await open();
  const key = { "idempotency-key": "k" };
  const first = await (await api.post("/v1/secrets", REQUEST, key)).json();
  const again = await api.post("/v1/secrets", REQUEST, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toEqual(first);
  const other = await api.post("/v1/secrets", { ...REQUEST, value: "x" }, key);
  expect(await errorOf(other)).toMatchObject({ status: 422, code: "idempotency_conflict" });
});

test("secrets are listed, and a deleted one is gone and its name can be used again", async () => {
  const api = await open();
  const { id } = await (await api.post("/v1/secrets", REQUEST)).json<SecretView>();
  expect(await (await api.ask("/v1/secrets")).json()).toMatchObject({
    object: "list",
    data: [{ id, name: REQUEST.name }],
    has_more: false,
  });
  const deleted = await api.ask(`/v1/secrets/${REQUEST.name}`, { method: "DELETE" });
  expect(await deleted.json()).toEqual({ object: "secret", id, deleted: true });
  for (const method of ["GET", "DELETE"]) {
    expect((await api.ask(`/v1/secrets/${id}`, { method })).status).toBe(404);
  }
  expect((await patch(api, id, { value: "x" })).status).toBe(404);
  expect((await api.post("/v1/secrets", REQUEST)).status).toBe(201);
});

test("an id means the secret with that id, even if another one has it as its name", async () => {
  const api = await open();
  const { id } = await (await api.post("/v1/secrets", REQUEST)).json<SecretView>();
  await api.post("/v1/secrets", { name: id, value: "another" });
  expect(await (await api.ask(`/v1/secrets/${id}`)).json()).toMatchObject({ id });
  await api.ask(`/v1/secrets/${id}`, { method: "DELETE" });
  expect((await api.ask(`/v1/secrets/${REQUEST.name}`)).status).toBe(404);
});

test("a body that is not JSON is refused without a part of it, because a value may be in it", async () => {
  const { post } = await open();
  const cut = `{"name": "SEARCH_KEY", "value": ${REQUEST.value}}`;
  for (const body of [cut, `[${cut.repeat(10)}`, REQUEST.value, `{"value": "${REQUEST.value}`]) {
    const error = await errorOf(await post("/v1/secrets", body));
    expect(error).toMatchObject({ status: 400, code: "invalid_request" });
    expect(JSON.stringify(error)).not.toMatch(/s3arch|value-/);
  }
});

test("a secret of another project is not found", async () => {
  const [mine, theirs] = [await open(), await open()];
  await theirs.post("/v1/secrets", REQUEST);
  expect((await mine.ask(`/v1/secrets/${REQUEST.name}`)).status).toBe(404);
  expect((await patch(mine, REQUEST.name, { value: "x" })).status).toBe(404);
  expect(await (await mine.ask("/v1/secrets")).json()).toMatchObject({ data: [] });
  expect((await mine.post("/v1/secrets", REQUEST)).status).toBe(201);
});

test.each([
  ["a name with a dash", { name: "SEARCH-KEY" }, "invalid_request", "name"],
  ["an empty value", { value: "" }, "invalid_request", "value"],
  ["a value over the limit", { value: "x".repeat(LIMITS.secretCharacters + 1) }, "invalid_request", "value"],
  ["a misspelt field", { valeu: "x" }, "unknown_field", "valeu"],
])("%s is refused by name, and the value is not repeated", async (_what, change, code, param) => {
  const { post } = await open();
  const reply = await post("/v1/secrets", { ...REQUEST, ...change });
  const error = await errorOf(reply);
  expect(error).toMatchObject({ status: 400, code, param });
  expect(JSON.stringify(error)).not.toContain(REQUEST.value);
});
