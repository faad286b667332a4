import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { SecretView } from "../../../src/contract/endpoint.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { sealContext, unseal } from "../../../src/kernel/kit/secrets.ts";
import { changeSecret, createSecret } from "../../../src/kernel/service/store-secret.ts";
import { type Door, openDoor } from "./door.ts";

const REQUEST = { name: "SEARCH_KEY", value: "s3arch-value-0123" };

const open = () => openDoor({ createSecret, changeSecret });

function patch({ ask }: Door, nameOrId: string, body: object): Promise<Response> {
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

async function storedValue({ scope }: Door, id: string): Promise<string> {
  const sealed = await env.DB.prepare("select sealed_value from secrets where id = ?")
    .bind(id)
    .first<string>("sealed_value");
  return unseal(env, sealed ?? "", sealContext(scope, id));
}

test("a secret is created with 201 and shown without its value, by name and by id", async () => {
  const door = await open();
  const reply = await door.post("/v1/secrets", REQUEST);
  expect(reply.status).toBe(201);
  const secret = await reply.json<SecretView>();
  const now = door.clock.now / 1000;
  expect(secret).toEqual({
    object: "secret",
    id: expect.stringMatching(/^sec_/),
    name: REQUEST.name,
    created_at: now,
    updated_at: now,
  });
  expect(reply.headers.get("location")).toBe(`/v1/secrets/${secret.id}`);
  for (const path of [secret.id, REQUEST.name]) {
    expect(await (await door.ask(`/v1/secrets/${path}`)).json()).toEqual(secret);
  }
  expect(await storedValue(door, secret.id)).toBe(REQUEST.value);
});

test("a taken name is a conflict that says how to change the value, and a patch changes it", async () => {
  const door = await open();
  const { id, created_at } = await (await door.post("/v1/secrets", REQUEST)).json<SecretView>();
  expect(await errorOf(await door.post("/v1/secrets", REQUEST))).toMatchObject({
    status: 409,
    code: "conflict",
    param: "name",
    message: expect.stringContaining("PATCH /v1/secrets/SEARCH_KEY"),
  });
  door.clock.now += 2000;
  const changed = await patch(door, REQUEST.name, { value: "another" });
  expect(await changed.json()).toMatchObject({ id, created_at, updated_at: created_at + 2 });
  expect(await storedValue(door, id)).toBe("another");
});

test("a repeat of an Idempotency-Key returns the same secret, and another value is refused", async () => {
  const door = await open();
  const key = { "idempotency-key": "k" };
  const first = await (await door.post("/v1/secrets", REQUEST, key)).json();
  const again = await door.post("/v1/secrets", REQUEST, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toEqual(first);
  const other = await door.post("/v1/secrets", { ...REQUEST, value: "x" }, key);
  expect(await errorOf(other)).toMatchObject({ status: 422, code: "idempotency_conflict" });
});

test("secrets are listed, and a deleted one is gone and its name can be used again", async () => {
  const door = await open();
  const { id } = await (await door.post("/v1/secrets", REQUEST)).json<SecretView>();
  expect(await (await door.ask("/v1/secrets")).json()).toMatchObject({
    object: "list",
    data: [{ id, name: REQUEST.name }],
    has_more: false,
  });
  const deleted = await door.ask(`/v1/secrets/${REQUEST.name}`, { method: "DELETE" });
  expect(await deleted.json()).toEqual({ object: "secret", id, deleted: true });
  for (const method of ["GET", "DELETE"]) {
    expect((await door.ask(`/v1/secrets/${id}`, { method })).status).toBe(404);
  }
  expect((await patch(door, id, { value: "x" })).status).toBe(404);
  expect((await door.post("/v1/secrets", REQUEST)).status).toBe(201);
});

test("an id means the secret with that id, even if another one has it as its name", async () => {
  const door = await open();
  const { id } = await (await door.post("/v1/secrets", REQUEST)).json<SecretView>();
  await door.post("/v1/secrets", { name: id, value: "another" });
  expect(await (await door.ask(`/v1/secrets/${id}`)).json()).toMatchObject({ id });
  await door.ask(`/v1/secrets/${id}`, { method: "DELETE" });
  expect((await door.ask(`/v1/secrets/${REQUEST.name}`)).status).toBe(404);
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
