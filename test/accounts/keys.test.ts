import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { LIMITS } from "../../src/contract/limits.ts";
import { sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { openTenant, storedKey, type Tenant } from "./tenant.ts";

const REQUEST = { name: "nightly", scopes: ["runs:write", "rollouts:read"] };

async function made({ call, admin }: Tenant, changes: object = {}) {
  const { status, body } = await call(admin, "POST /v1/keys", { ...REQUEST, ...changes });
  expect(status).toBe(201);
  return body;
}

test("a key is shown once, has its scopes, and is stored as a hash", async () => {
  const tenant = await openTenant();
  const { call, admin, scope, clock } = tenant;
  const key = await made(tenant, { project: scope.projectId, requests_per_minute: 90 });
  expect(key).toEqual({
    object: "key",
    id: expect.stringMatching(/^key_/),
    ...REQUEST,
    key: expect.stringMatching(/^rk_/),
    project_id: scope.projectId,
    person_id: null,
    prefix: key.key.slice(0, 7),
    last4: key.key.slice(-4),
    requests_per_minute: 90,
    created_by: expect.stringMatching(/^key_/),
    created_at: clock.now / 1000,
    expires_at: null,
    revoked_at: null,
    rotated_to: null,
  });
  const { key: token, ...view } = key;
  expect((await call(admin, `GET /v1/keys/${key.id}`)).body).toEqual(view);
  expect((await call(token, "GET /v1/whoami")).body).toMatchObject({ who: key.id, scopes: REQUEST.scopes });
  expect((await call(token, "GET /v1/runs")).status).toBe(200);
  expect((await call(token, "GET /v1/endpoints")).status).toBe(403);
  expect((await storedKey(key.id))?.hash).toBe(sha256Hex(token));
});

test("a list shows keys in every state, page by page, and no tokens", async () => {
  const tenant = await openTenant();
  const keys = [await made(tenant), await made(tenant), await made(tenant)];
  const first = await tenant.call(tenant.admin, "GET /v1/keys?limit=4");
  expect(first.body.has_more).toBe(true);
  const next = await tenant.call(tenant.admin, `GET /v1/keys?after=${first.body.last_id}`);
  const listed = [...first.body.data, ...next.body.data];
  expect(listed.length).toBe(5);
  expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(keys.map(({ id }) => id)));
  for (const { key } of keys) expect(JSON.stringify([first, next])).not.toContain(key.slice(0, 20));
});

test("a key cannot create a key with more scopes", async () => {
  const { call, keyWith, scope } = await openTenant();
  const admin = await keyWith({ project_id: null, scopes: ["admin"] });
  const wanted = { name: "x", scopes: ["runs:read", "operator"] };
  const refused = await call(admin, "POST /v1/keys", wanted);
  expect(refused).toMatchObject({ status: 403, body: { error: { code: "forbidden", param: "scopes" } } });
  expect(refused.body.error.message).toContain("operator");
  const operator = await keyWith({ project_id: null, scopes: ["admin", "operator"] });
  const { body } = await call(operator, "POST /v1/keys", wanted);
  expect(body.scopes).toEqual(wanted.scopes);
  expect((await call(admin, `POST /v1/keys/${body.id}/rotate`, {})).status).toBe(403);
  const plain = await made({ call, admin } as Tenant);
  expect((await call(admin, `PATCH /v1/keys/${plain.id}`, { scopes: ["operator"] })).status).toBe(403);
  const writer = await keyWith({ scopes: ["runs:write", "secrets:write"] });
  expect((await call(writer, "POST /v1/keys", { ...REQUEST, project: scope.projectId })).status).toBe(403);
});

test("a key of one project creates and sees only keys of that project", async () => {
  const { call, admin, token, scope } = await openTenant();
  const whole = await call(token, "POST /v1/keys", REQUEST);
  expect(whole).toMatchObject({ status: 403, body: { error: { code: "forbidden", param: "project" } } });
  const other = (await call(admin, "POST /v1/projects", { name: "other" })).body;
  const elsewhere = await call(token, "POST /v1/keys", { ...REQUEST, project: other.id });
  expect(elsewhere).toMatchObject({ status: 404, body: { error: { code: "not_found", param: "project" } } });
  const own = await call(token, "POST /v1/keys", { ...REQUEST, project: scope.projectId });
  expect(own.status).toBe(201);
  const ofOther = (await call(admin, "POST /v1/keys", { ...REQUEST, project: "other" })).body;
  for (const route of ["GET", "PATCH", "DELETE"]) {
    const body = route === "PATCH" ? { name: "mine" } : undefined;
    expect((await call(token, `${route} /v1/keys/${ofOther.id}`, body)).status).toBe(404);
  }
  expect((await call(token, `POST /v1/keys/${ofOther.id}/rotate`, {})).status).toBe(404);
  const listed: { project_id: string }[] = (await call(token, "GET /v1/keys")).body.data;
  expect(new Set(listed.map(({ project_id }) => project_id))).toEqual(new Set([scope.projectId]));
  expect((await storedKey(ofOther.id))?.revoked_at).toBeNull();
});

test("another organisation's keys are not found", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const { id } = await made(one);
  for (const route of [`GET /v1/keys/${id}`, `DELETE /v1/keys/${id}`]) {
    expect((await other.call(other.admin, route)).status).toBe(404);
  }
  expect((await other.call(other.admin, `PATCH /v1/keys/${id}`, { name: "x" })).status).toBe(404);
  expect((await other.call(other.admin, `POST /v1/keys/${id}/rotate`, {})).status).toBe(404);
  expect((await other.call(other.admin, "POST /v1/keys", { ...REQUEST, project: one.scope.projectId })).status).toBe(
    404,
  );
  expect(await storedKey(id)).toMatchObject({ revoked_at: null, name: "nightly" });
});

test("a repeat creates no second key and does not show the first again", async () => {
  const tenant = await openTenant();
  const { call, admin } = tenant;
  const header = { "idempotency-key": "once" };
  const both = await Promise.all([1, 2].map(() => call(admin, "POST /v1/keys", REQUEST, header)));
  const tokens = both.map(({ body }) => body.key).filter((key) => key !== null);
  expect(tokens.length).toBe(1);
  expect(both[0]?.body.id).toBe(both[1]?.body.id);
  const again = await call(admin, "POST /v1/keys", REQUEST, header);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(again.body).toMatchObject({ id: both[0]?.body.id, key: null });
  expect((await call(admin, "POST /v1/keys", { ...REQUEST, name: "other" }, header)).status).toBe(422);
});

test("a rotated key works until the overlap ends, and the new key has all of its attributes", async () => {
  const tenant = await openTenant();
  const { call, admin, clock, scope } = tenant;
  const before = await made(tenant, { project: scope.projectId, requests_per_minute: 90, expires_at: 1_900_000_000 });
  const { status, body: next } = await call(admin, `POST /v1/keys/${before.id}/rotate`, { overlap_s: 600 });
  expect(status).toBe(201);
  const same = ({ name, scopes, project_id, requests_per_minute, expires_at }: typeof next) => [
    name,
    scopes,
    project_id,
    requests_per_minute,
    expires_at,
  ];
  expect(same(next)).toEqual(same(before));
  expect(next.key).not.toBe(before.key);
  const replaced = (await call(admin, `GET /v1/keys/${before.id}`)).body;
  expect(replaced).toMatchObject({ rotated_to: next.id, expires_at: clock.now / 1000 + 600 });
  for (const key of [before.key, next.key]) expect((await call(key, "GET /v1/runs")).status).toBe(200);
  clock.now += 600_000;
  expect((await call(before.key, "GET /v1/runs")).status).toBe(401);
  expect((await call(next.key, "GET /v1/runs")).status).toBe(200);
});

test("a key is rotated once, also by concurrent requests, and a repeat returns no token", async () => {
  const tenant = await openTenant();
  const { call, admin } = tenant;
  const before = await made(tenant);
  const path = `POST /v1/keys/${before.id}/rotate`;
  const both = await Promise.all([1, 2].map(() => call(admin, path, {})));
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const other = await made(tenant);
  const header = { "idempotency-key": "turn" };
  const { body: next } = await call(admin, `POST /v1/keys/${other.id}/rotate`, {}, header);
  const again = await call(admin, `POST /v1/keys/${other.id}/rotate`, {}, header);
  expect(again.body).toEqual({ ...next, key: null });
  const third = await made(tenant);
  expect((await call(admin, `POST /v1/keys/${third.id}/rotate`, {}, header)).status).toBe(422);
});

test("an overlap does not extend a key's life, and only an active key can be rotated", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const ends = clock.now / 1000 + 60;
  const short = await made(tenant, { expires_at: ends });
  await call(admin, `POST /v1/keys/${short.id}/rotate`, { overlap_s: 604_800 });
  expect((await call(admin, `GET /v1/keys/${short.id}`)).body.expires_at).toBe(ends);
  const revoked = await made(tenant);
  await call(admin, `DELETE /v1/keys/${revoked.id}`);
  expect((await call(admin, `POST /v1/keys/${revoked.id}/rotate`, {})).status).toBe(409);
  const over = await made(tenant, { expires_at: ends });
  clock.now += 61_000;
  const late = await call(admin, `POST /v1/keys/${over.id}/rotate`, {});
  expect(late).toMatchObject({ status: 409, body: { error: { message: expect.stringContaining("has expired") } } });
});

test("a revoked key is refused, and revoking it again changes nothing", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const { id, key } = await made(tenant);
  const first = await call(admin, `DELETE /v1/keys/${id}`);
  expect(first.body).toMatchObject({ id, revoked_at: clock.now / 1000 });
  clock.now += 10_000;
  expect((await call(admin, `DELETE /v1/keys/${id}`)).body).toEqual(first.body);
  expect((await call(key, "GET /v1/runs")).status).toBe(401);
  expect((await call(admin, `PATCH /v1/keys/${id}`, { name: "x" })).status).toBe(409);
});

test("a patch changes only the given fields", async () => {
  const tenant = await openTenant();
  const { call, admin } = tenant;
  const { key, ...before } = await made(tenant, { requests_per_minute: 5 });
  const change = { scopes: ["secrets:read"], requests_per_minute: null };
  const { body } = await call(admin, `PATCH /v1/keys/${before.id}`, change);
  expect(body).toEqual({ ...before, ...change });
  expect((await call(admin, `PATCH /v1/keys/${before.id}`, {})).body).toEqual(body);
  expect((await call(key, "GET /v1/runs")).status).toBe(403);
});

test.each([
  ["scopes", { scopes: [] }],
  ["scopes", { scopes: ["runs:read", "runs:read"] }],
  ["scopes[0]", { scopes: ["everything"] }],
  ["expires_at", { expires_at: 1_700_000_000 }],
  ["requests_per_minute", { requests_per_minute: 0 }],
  ["name", { name: "a\nb" }],
])("a request for a key names the wrong field: %s", async (param, wrong) => {
  const { call, admin } = await openTenant();
  const { status, body } = await call(admin, "POST /v1/keys", { ...REQUEST, ...wrong });
  expect([status, body.error.param]).toEqual([400, param]);
});

/** Inserts this many keys without known tokens, older than all others, active or revoked. */
async function fill(orgId: string, many: number, revokedAt: number | null): Promise<void> {
  const name = crypto.randomUUID();
  const columns = "id, hash, org_id, name, prefix, last4, scopes, created_by, created_at, revoked_at";
  const rows = `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1)
    select ?2 || i, ?2 || i, ?3, ?2, '', '', '[]', '', i, ?4 from n`;
  await env.DB.prepare(`insert into api_keys (${columns}) ${rows}`).bind(many, name, orgId, revokedAt).run();
}

test("an organisation has a maximum of active keys", async () => {
  const { call, admin, scope } = await openTenant();
  // Two keys exist: the tenant's own, and the calling one.
  await fill(scope.orgId, LIMITS.keys - 3, null);
  const last = await call(admin, "POST /v1/keys", REQUEST);
  expect(last.status).toBe(201);
  const full = { status: 409, body: { error: { code: "conflict", message: expect.stringContaining("revoke some") } } };
  expect(await call(admin, "POST /v1/keys", REQUEST)).toMatchObject(full);
  expect(await call(admin, `POST /v1/keys/${last.body.id}/rotate`, {})).toMatchObject(full);
  await call(admin, `DELETE /v1/keys/${last.body.id}`);
  expect((await call(admin, "POST /v1/keys", REQUEST)).status).toBe(201);
});

test("the latest ended keys are kept", async () => {
  const { call, admin, scope } = await openTenant();
  await fill(scope.orgId, LIMITS.endedAccounts + 5, 1);
  await call(admin, "POST /v1/keys", REQUEST);
  const ended = env.DB.prepare(
    "select count(*) n, min(created_at) oldest from api_keys where org_id = ? and revoked_at = 1",
  );
  expect(await ended.bind(scope.orgId).first()).toEqual({ n: LIMITS.endedAccounts, oldest: 6 });
});

test("a new key does not outlast the calling key, nor allow more requests", async () => {
  const { call, keyWith, clock } = await openTenant();
  const expires_at = clock.now + 3_600_000;
  const lent = await keyWith({ project_id: null, expires_at, requests_per_minute: 60 });
  const ends = expires_at / 1000;
  const make = async (changes: object) => {
    const asked = { ...REQUEST, expires_at: ends, requests_per_minute: 60, ...changes };
    const { status, body } = await call(lent, "POST /v1/keys", asked);
    return status === 201 ? body.id : [status, body.error.param];
  };
  expect(await make({ expires_at: null })).toEqual([403, "expires_at"]);
  expect(await make({ expires_at: ends + 1 })).toEqual([403, "expires_at"]);
  expect(await make({ requests_per_minute: null })).toEqual([403, "requests_per_minute"]);
  expect(await make({ requests_per_minute: 61 })).toEqual([403, "requests_per_minute"]);
  const id = await make({});
  expect((await call(lent, `PATCH /v1/keys/${id}`, { requests_per_minute: null })).status).toBe(403);
  expect((await call(lent, `PATCH /v1/keys/${id}`, { requests_per_minute: 5 })).status).toBe(200);
});

test("a key with an expiry can rotate no key that outlasts it, except itself", async () => {
  const tenant = await openTenant();
  const { call, keyWith, clock } = tenant;
  const ends = clock.now / 1000 + 3600;
  const lent = await keyWith({ project_id: null, expires_at: ends * 1000, requests_per_minute: 60 });
  const rotate = async (changes: object) => {
    const { id } = await made(tenant, { expires_at: ends, requests_per_minute: 60, ...changes });
    const { status, body } = await call(lent, `POST /v1/keys/${id}/rotate`, {});
    return status === 201 ? body.expires_at : [status, body.error.param];
  };
  expect(await rotate({ expires_at: null })).toEqual([403, "expires_at"]);
  expect(await rotate({ requests_per_minute: null })).toEqual([403, "requests_per_minute"]);
  expect(await rotate({})).toBe(ends);
  const { who } = (await call(lent, "GET /v1/whoami")).body;
  expect((await call(lent, `POST /v1/keys/${who}/rotate`, {})).body.expires_at).toBe(ends);
});

test("only the key itself can change or revoke a key that has more scopes than the caller", async () => {
  const { call, admin, keyWith } = await openTenant();
  const { id } = (
    await call(await keyWith({ project_id: null, scopes: ["admin", "operator"] }), "POST /v1/keys", {
      name: "operator",
      scopes: ["operator"],
    })
  ).body;
  for (const [route, body] of [["PATCH", { scopes: ["runs:read"] }], ["DELETE"]] as const) {
    const refused = await call(admin, `${route} /v1/keys/${id}`, body);
    expect(refused).toMatchObject({ status: 403, body: { error: { code: "forbidden" } } });
    expect(refused.body.error.message).toContain("the scope operator");
  }
  expect(await storedKey(id)).toMatchObject({ revoked_at: null, scopes: JSON.stringify(["operator"]) });
  const both = await keyWith({ project_id: null, scopes: ["admin", "operator"] });
  for (const key of [id, (await call(both, "GET /v1/whoami")).body.who]) {
    expect((await call(both, `DELETE /v1/keys/${key}`)).status).toBe(200);
  }
});

test("only an operator can delete an organisation that has an operator's key", async () => {
  const { call, admin, keyWith, scope } = await openTenant();
  const operator = await keyWith({ project_id: null, scopes: ["admin", "operator"] });
  const refused = await call(admin, "DELETE /v1/organization", { confirm: scope.orgId });
  expect(refused).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect(refused.body.error.message).toContain("operator");
  expect((await call(admin, "GET /v1/keys")).status).toBe(200);
  expect((await call(operator, "DELETE /v1/organization", { confirm: scope.orgId })).status).toBe(202);
  const other = await openTenant();
  await other.keyWith({ project_id: null, scopes: ["operator"], revoked_at: 1 });
  const { status } = await other.call(other.admin, "DELETE /v1/organization", { confirm: other.scope.orgId });
  expect(status).toBe(202);
});

test("creating something in an organisation or project that is being deleted is refused for that reason", async () => {
  const { call, admin, token, scope } = await openTenant();
  const own = (await call(token, "GET /v1/whoami")).body.who;
  // After one request, the keys stay cached for 2 seconds.
  expect((await call(admin, "GET /v1/keys")).status).toBe(200);
  await env.DB.prepare("update projects set deleted_at = 1, name = null where id = ?").bind(scope.projectId).run();
  const rotated = await call(admin, `POST /v1/keys/${own}/rotate`, {});
  expect(rotated.body.error.message).toBe(`${scope.projectId} is being deleted`);
  await env.DB.prepare("update organizations set deleted_at = 1 where id = ?").bind(scope.orgId).run();
  const asked = [
    await call(admin, "POST /v1/keys", REQUEST),
    await call(admin, "POST /v1/projects", { name: "other" }),
    await call(admin, "POST /v1/invitations", { email: "ann@example.com", role: "viewer" }),
  ];
  for (const { status, body } of asked) {
    expect([status, body.error.message]).toEqual([409, "the organisation is being deleted"]);
  }
});
