import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { sha256Hex } from "../../../src/kernel/kit/secrets.ts";
import type { Services } from "../../../src/kernel/service/services.ts";
import { admit } from "../../accounts/admit.ts";
import { overtaken } from "./overtaken.ts";
import { openTestApi } from "./test-api.ts";

const listNothing = { listEnvironments: async () => ({ rows: [], limit: 1 }) };

test("a request without a key is 401 with how to send one", async () => {
  const { ask } = await openTestApi();
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

test("an unknown key is 401", async () => {
  const { ask } = await openTestApi(listNothing);
  const reply = await ask("/v1/environments", { headers: { authorization: "Bearer rk_guess" } });
  expect(reply.status).toBe(401);
});

test("a valid key is accepted", async () => {
  const { ask } = await openTestApi(listNothing);
  expect((await ask("/v1/environments")).status).toBe(200);
});

test("a deleted key works for less than 5 s more in this isolate", async () => {
  const { ask, clock, scope } = await openTestApi(listNothing);
  expect((await ask("/v1/environments")).status).toBe(200);
  await env.DB.prepare("delete from api_keys where org_id = ?").bind(scope.orgId).run();
  clock.now += 1_999;
  expect((await ask("/v1/environments")).status).toBe(200);
  clock.now += 1;
  expect((await ask("/v1/environments")).status).toBe(401);
});

test("a service is called with the scope of the key, whatever the caller sends", async () => {
  const seen: unknown[] = [];
  const api = await openTestApi({
    readRun: async (_env, scope) => {
      seen.push(scope);
      return { ok: false, error: { code: "not_found", message: "no such run", param: null } };
    },
  });
  await api.ask("/v1/runs/run_x", { headers: { "x-org-id": "org_other" } });
  expect(seen).toEqual([api.scope]);
});

test("health and the OpenAPI page need no key", async () => {
  const { ask } = await openTestApi();
  const anonymous = { headers: { authorization: "" } };
  expect(await (await ask("/healthz", anonymous)).json()).toEqual({ status: "ok" });
  expect((await ask("/openapi.json", anonymous)).status).toBe(200);
});

const listEnvironments = async () => ({ rows: [], limit: 1 });

test("a revoked key is refused everywhere in less than 5 s", async () => {
  const { ask, clock, token } = await openTestApi({ listEnvironments });
  expect((await ask("/v1/environments")).status).toBe(200);
  await env.DB.prepare("update api_keys set revoked_at = 1 where hash = ?").bind(sha256Hex(token)).run();
  clock.now += 4_000;
  expect((await ask("/v1/environments")).status).toBe(401);
});

test("a lookup that began before a key was revoked and ends later admits no later request", async () => {
  const { app, ask, clock, token } = await openTestApi(listNothing);
  const status = async () => (await ask("/v1/environments")).status;
  const revoke = async () => {
    await env.DB.prepare("update api_keys set revoked_at = 1 where hash = ?").bind(sha256Hex(token)).run();
    clock.now += 1;
    expect(await status()).toBe(401);
  };
  const DB = overtaken(env.DB, /from "api_keys"/, revoke, "after");
  const headers = { authorization: `Bearer ${token}` };
  const late = await app.request("http://platform.test/v1/environments", { headers }, { ...env, DB });
  expect([late.status, await status()]).toEqual([200, 401]);
});

test("an expired key is refused, with that reason", async () => {
  const api = await openTestApi({ listEnvironments });
  const expires_at = api.clock.now + 1000;
  const token = await admit(api.scope, { expires_at });
  const headers = { authorization: `Bearer ${token}` };
  expect((await api.ask("/v1/environments", { headers })).status).toBe(200);
  api.clock.now += 1000;
  const reply = await api.ask("/v1/environments", { headers });
  expect([reply.status, await reply.json()]).toMatchObject([401, { error: { message: /expired/ } }]);
});

test("a key is refused what its scopes do not include, and the error names the missing scope", async () => {
  const api = await openTestApi({ listEnvironments });
  const token = await admit(api.scope, { scopes: ["runs:write"] });
  const reply = await api.ask("/v1/environments", { headers: { authorization: `Bearer ${token}` } });
  expect(reply.status).toBe(403);
  expect(await reply.json()).toMatchObject({
    error: { code: "forbidden", message: "this key lacks the scope environments:read" },
  });
});

test("a person's key may do no more than the person, and nothing once the membership has ended", async () => {
  const api = await openTestApi({ listEnvironments, createSecret: refusing });
  const token = await admit(api.scope, { person_id: "per_1" });
  const { orgId } = api.scope;
  await env.DB.prepare("insert into members (org_id, person_id, role, created_at) values (?, 'per_1', 'viewer', 0)")
    .bind(orgId)
    .run();
  const headers = { authorization: `Bearer ${token}` };
  expect((await api.ask("/v1/environments", { headers })).status).toBe(200);
  const secret = { method: "POST", body: "{}", headers };
  expect((await api.ask("/v1/secrets", secret)).status).toBe(403);
  await env.DB.prepare("delete from members where org_id = ?").bind(orgId).run();
  api.clock.now += 4000;
  expect((await api.ask("/v1/environments", { headers })).status).toBe(401);
});

test("a key of a whole organisation names the project, by id or by name, and finds none of another organisation", async () => {
  const scopes: unknown[] = [];
  const readRun: Services["readRun"] = async (_env, scope) => {
    scopes.push(scope);
    return { ok: false, error: { code: "not_found", message: "no such run", param: "id" } };
  };
  const [api, other] = [await openTestApi({ readRun }), await openTestApi()];
  const token = await admit(api.scope, { project_id: null });
  const askFor = (project: Record<string, string>) =>
    api.ask("/v1/runs/run_x", { headers: { authorization: `Bearer ${token}`, ...project } });
  const unnamed = await askFor({});
  expect([unnamed.status, await unnamed.json()]).toMatchObject([400, { error: { param: "Rollcall-Project" } }]);
  await askFor({ "rollcall-project": api.scope.projectId });
  expect(scopes).toEqual([api.scope]);
  const theirs = await askFor({ "rollcall-project": other.scope.projectId });
  expect([theirs.status, await theirs.json()]).toMatchObject([404, { error: { param: "Rollcall-Project" } }]);
  expect(scopes.length).toBe(1);
});

test("no request is accepted once the deletion of the organisation or of the key's project has begun", async () => {
  for (const table of ["organizations", "projects"] as const) {
    const { ask, scope } = await openTestApi({ listEnvironments });
    const id = table === "projects" ? scope.projectId : scope.orgId;
    await env.DB.prepare(`update ${table} set deleted_at = 1 where id = ?`).bind(id).run();
    expect((await ask("/v1/environments")).status).toBe(401);
  }
});

test("a key with its own limit gets headers with what is left, and beyond it a 429 with the time to wait", async () => {
  const api = await openTestApi({ listEnvironments });
  const token = await admit(api.scope, { requests_per_minute: 6 });
  const headers = { authorization: `Bearer ${token}` };
  const statuses: number[] = [];
  for (let at = 0; at < 8; at += 1) {
    const reply = await api.ask("/v1/environments", { headers });
    statuses.push(reply.status);
    expect(reply.headers.get("x-ratelimit-limit-requests")).toBe("6");
    if (at === 1) expect(Number(reply.headers.get("x-ratelimit-remaining-requests"))).toBe(4);
    if (reply.status === 429) expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429, 429]);
  expect((await api.ask("/v1/environments")).status).toBe(200);
});

test("an organisation's limit applies to all its keys together", async () => {
  const api = await openTestApi({ listEnvironments });
  await env.DB.prepare(`update organizations set limits = '{"requests_per_minute":8}' where id = ?`)
    .bind(api.scope.orgId)
    .run();
  const tokens = [api.token, await admit(api.scope)];
  const statuses: number[] = [];
  for (let at = 0; at < 10; at += 1) {
    const headers = { authorization: `Bearer ${tokens[at % 2]}` };
    statuses.push((await api.ask("/v1/environments", { headers })).status);
  }
  expect(statuses.filter((status) => status === 200).length).toBe(8);
});

test("too many wrong keys from one address are 429, another address is not, and none costs a lookup", async () => {
  const api = await openTestApi({ listEnvironments });
  const DB = new Proxy(env.DB, { get: refusing });
  const bindings = { ...env, DB };
  const from = async (address: string) => {
    const headers = { authorization: `Bearer rk_${"0".repeat(48)}`, "cf-connecting-ip": address };
    return (await api.app.request("/v1/environments", { headers }, bindings)).status;
  };
  const address = crypto.randomUUID();
  const statuses = await Promise.all(Array.from({ length: 250 }, () => from(address)));
  // The limit is 100 in each minute of the clock, and the requests may fall into two minutes.
  expect(statuses.filter((status) => status === 401).length % 100).toBe(0);
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(50);
  expect(await from(crypto.randomUUID())).toBe(401);
});

test("a request that outlasts its key does not get the result that it waited for", async () => {
  const api = await openTestApi({
    listEnvironments: async () => {
      await env.DB.prepare("update api_keys set revoked_at = 1 where org_id = ?").bind(api.scope.orgId).run();
      api.clock.now += 30_000;
      return { rows: [], limit: 1 };
    },
  });
  const reply = await api.ask("/v1/environments");
  expect([reply.status, await reply.json()]).toMatchObject([401, { error: { message: /revoked/ } }]);
});

test("a withheld reply sends none of its headers", async () => {
  const api = await openTestApi({
    readManifest: async () => {
      await env.DB.prepare("update api_keys set revoked_at = 1 where org_id = ?").bind(api.scope.orgId).run();
      api.clock.now += 30_000;
      const body = new Response("x".repeat(5000)).body;
      return { ok: true, value: { body, bytes: 5000 } };
    },
  });
  const reply = await api.ask("/v1/runs/run_x/batches/1?max_wait_s=30");
  expect(reply.status).toBe(401);
  expect(reply.headers.get("content-length")).not.toBe("5000");
  expect(await reply.json()).toMatchObject({ error: { code: "unauthorized" } });
});

test("every reply has the limit headers, refusals too", async () => {
  const readRun: Services["readRun"] = async () => {
    return { ok: false, error: { code: "not_found", message: "no such run", param: "id" } };
  };
  const api = await openTestApi({ listEnvironments, readRun });
  for (const path of ["/v1/environments", "/v1/runs/run_x", "/v1/runs?limit=none"]) {
    const reply = await api.ask(path);
    expect([path, reply.headers.get("x-ratelimit-limit-requests")]).toEqual([path, "6000"]);
    expect(reply.headers.get("x-request-id")).not.toBeNull();
  }
});

test("a key that exceeds its own limit does not affect the other keys of its organisation", async () => {
  const api = await openTestApi({ listEnvironments });
  await env.DB.prepare(`update organizations set limits = '{"requests_per_minute":20}' where id = ?`)
    .bind(api.scope.orgId)
    .run();
  const headers = { authorization: `Bearer ${await admit(api.scope, { requests_per_minute: 4 })}` };
  for (let at = 0; at < 30; at += 1) await api.ask("/v1/environments", { headers });
  for (let at = 0; at < 16; at += 1) expect((await api.ask("/v1/environments")).status).toBe(200);
});

test("if the counter does not answer, no request is refused for that", async () => {
  const api = await openTestApi({ listEnvironments });
  const REQUESTS = { getByName: () => ({ take: () => Promise.reject(new Error("overloaded")) }) };
  const headers = { authorization: `Bearer ${api.token}` };
  const reply = await api.app.request("/v1/environments", { headers }, { ...env, REQUESTS });
  expect(reply.status).toBe(200);
});

test("a key of a whole organisation that names no project uses the one called default", async () => {
  const scopes: unknown[] = [];
  const readRun: Services["readRun"] = async (_env, scope) => {
    scopes.push(scope);
    return { ok: false, error: { code: "not_found", message: "no such run", param: "id" } };
  };
  const api = await openTestApi({ readRun });
  await env.DB.prepare("update projects set name = 'default' where id = ?").bind(api.scope.projectId).run();
  const headers = { authorization: `Bearer ${await admit(api.scope, { project_id: null })}` };
  expect((await api.ask("/v1/runs/run_x", { headers })).status).toBe(404);
  expect(scopes).toEqual([api.scope]);
});

test("a project header that is not a valid name is not looked up", async () => {
  const api = await openTestApi({ listEnvironments });
  const token = await admit(api.scope, { project_id: null });
  expect((await api.ask("/v1/environments", { headers: { authorization: `Bearer ${token}` } })).status).toBe(400);
  const headers = { authorization: `Bearer ${token}`, "rollcall-project": "x".repeat(5000) };
  const DB = new Proxy(env.DB, { get: refusing });
  expect((await api.app.request("/v1/environments", { headers }, { ...env, DB })).status).toBe(404);
});

test("addresses of one IPv6 network count as one", async () => {
  const api = await openTestApi({ listEnvironments });
  const network = crypto.randomUUID().slice(0, 4);
  const from = async (address: string) => {
    const headers = { authorization: `Bearer rk_${"0".repeat(48)}`, "cf-connecting-ip": address };
    return (await api.ask("/v1/environments", { headers })).status;
  };
  const ofOne = Array.from({ length: 250 }, (_, at) => `2001:db8:${network}:1::${at.toString(16)}`);
  const statuses = await Promise.all([...ofOne, `2001:db8:${network}:1:ffff:1:2:3`].map(from));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(51);
  expect(await from(`2001:db8:${network}:2::1`)).toBe(401);
});

test("an urgent operation is carried out even if the audit log cannot be written, and no other is", async () => {
  const cancelRun: Services["cancelRun"] = async () => {
    return { ok: false, error: { code: "conflict", message: "it has ended", param: null } };
  };
  const api = await openTestApi({ cancelRun });
  const away = () => Promise.reject(new Error("away"));
  const AUDIT = { getByName: () => ({ begin: away, settingsChanged: away, settingsVersion: away }) };
  const headers = { authorization: `Bearer ${api.token}`, "content-type": "application/json" };
  const post = async (path: string) => {
    const init = { method: "POST", headers, body: "{}" };
    return (await api.app.request(path, init, { ...env, AUDIT })).status;
  };
  expect(await post("/v1/runs/run_x/cancel")).toBe(409);
  expect(await post("/v1/secrets")).toBe(500);
});

function refusing(): never {
  throw new Error("nobody was to be asked");
}
