import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { openDoor } from "./door.ts";

const listNothing = { listEnvironments: async () => [] };

test("a request without a key is 401 and says how to send one", async () => {
  const { ask } = await openDoor();
  const reply = await ask("/v1/runs", { headers: { authorization: "" } });
  expect(reply.status).toBe(401);
  expect(reply.headers.get("www-authenticate")).toBe("Bearer");
  expect(await reply.json()).toEqual({
    error: {
      code: "unauthorized",
      message: "send your key as: Authorization: Bearer <key>",
      param: null,
      type: "authentication_error",
    },
  });
});

test("a key nobody was given is 401", async () => {
  const { ask } = await openDoor(listNothing);
  const reply = await ask("/v1/environments", { headers: { authorization: "Bearer rc_guess" } });
  expect(reply.status).toBe(401);
});

test("a good key is let in", async () => {
  const { ask } = await openDoor(listNothing);
  expect((await ask("/v1/environments")).status).toBe(200);
});

test("a deleted key works for the rest of its minute in this isolate, and no longer", async () => {
  const { ask, clock, scope } = await openDoor(listNothing);
  expect((await ask("/v1/environments")).status).toBe(200);
  await env.DB.prepare("delete from api_keys where org_id = ?").bind(scope.orgId).run();
  clock.now += 59_999;
  expect((await ask("/v1/environments")).status).toBe(200);
  clock.now += 1;
  expect((await ask("/v1/environments")).status).toBe(401);
});

test("a service is called with the scope of the key, whatever the caller sends", async () => {
  const seen: unknown[] = [];
  const door = await openDoor({
    readRun: async (_env, scope) => {
      seen.push(scope);
      return { ok: false, error: { code: "not_found", message: "no such run", param: null } };
    },
  });
  await door.ask("/v1/runs/run_x", { headers: { "x-org-id": "org_other" } });
  expect(seen).toEqual([door.scope]);
});

test("health and the OpenAPI page need no key", async () => {
  const { ask } = await openDoor();
  const anonymous = { headers: { authorization: "" } };
  expect(await (await ask("/healthz", anonymous)).json()).toEqual({ status: "ok" });
  expect((await ask("/openapi.json", anonymous)).status).toBe(200);
});
