/** Browser sessions: how they start, what their cookie allows, and when they end. */
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { expect, test } from "vitest";
import { beginSession, listWebSessions } from "../../src/accounts/queries/web-sessions.ts";
import { webSessions } from "../../src/accounts/tables.ts";
import { mintToken } from "../../src/core/ids.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { REMEMBERED_MS } from "../../src/kernel/http/operation.ts";
import { minting, sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { joined } from "../kernel/http/authorization/resources.ts";
import { type Browser, openBrowser } from "../kernel/http/browser.ts";
import { openTenant, type Tenant } from "./tenant.ts";

const HTTPS = "https://platform.test";
const LOCAL = "http://127.0.0.1:8787";
const HOUR = 3600_000;

async function signedIn(tenant: Tenant, key = tenant.admin): Promise<Browser> {
  const browser = openBrowser(tenant, HTTPS);
  const { code } = (await tenant.call(key, "POST /v1/sign-in-codes")).body;
  expect((await browser.ask("POST /v1/session", { code })).status).toBe(201);
  return browser;
}

const statusOf = async (asked: Promise<Response>) => (await asked).status;

test("a one-time code starts one session, which has its key's permissions", async () => {
  const tenant = await openTenant();
  const key = await tenant.keyWith({ scopes: ["runs:read"] });
  const { status, body } = await tenant.call(key, "POST /v1/sign-in-codes");
  expect([status, body.url]).toEqual([201, `http://platform.test/sign-in#code=${body.code}`]);
  expect(body.expires_at).toBe(tenant.clock.now / 1000 + 300);
  const browser = openBrowser(tenant, HTTPS);
  const reply = await browser.ask("POST /v1/session", { code: body.code });
  const mine = (await tenant.call(key, "GET /v1/whoami")).body;
  const session = { id: expect.stringMatching(/^ses_/), expires_at: (tenant.clock.now + 12 * HOUR) / 1000 };
  expect([reply.status, await reply.json()]).toEqual([201, { ...mine, session }]);
  expect(reply.headers.get("set-cookie")).toMatch(
    /^__Host-rollcall=rks_\w+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  );
  expect(await (await browser.ask("GET /v1/whoami")).json()).toEqual({ ...mine, session });
  expect([await statusOf(browser.ask("GET /v1/runs")), await statusOf(browser.ask("GET /v1/keys"))]).toEqual([
    200, 403,
  ]);
  // A request with a key is the key's, not the session's.
  const keyed = { authorization: `Bearer ${tenant.admin}` };
  expect(
    (await (await browser.ask("GET /v1/whoami", undefined, keyed)).json<{ session: unknown }>()).session,
  ).toBeNull();
  expect(await statusOf(openBrowser(tenant, HTTPS).ask("POST /v1/session", { code: body.code }))).toBe(401);
  const log = (await tenant.call(tenant.admin, "GET /v1/audit-log")).body.data;
  expect(log.map(({ action }: { action: string }) => action)).toEqual(["createSession", "createSignInCode"]);
  expect(log[0]).toMatchObject({ who: mine.who, made: session.id });
});

test("codes, sessions and keys of an organisation in another D1 database are found there, and name it", async () => {
  const tenant = await openTenant(1);
  const { body: key } = await tenant.call(tenant.admin, "POST /v1/keys", { name: "ci", scopes: ["runs:read"] });
  const { code } = (await tenant.call(key.key, "POST /v1/sign-in-codes")).body;
  expect([tenant.admin, key.key, code]).toEqual(
    ["rk", "rk", "rkc"].map((kind) => expect.stringMatching(`^${kind}_1_`)),
  );
  const browser = openBrowser(tenant, HTTPS);
  const reply = await browser.ask("POST /v1/session", { code });
  expect([reply.status, reply.headers.get("set-cookie")]).toEqual([
    201,
    expect.stringMatching(/^__Host-rollcall=rks_1_/),
  ]);
  expect(await (await browser.ask("GET /v1/whoami")).json()).toMatchObject({
    organization: { id: tenant.scope.orgId },
  });
  expect(await statusOf(openBrowser(tenant, HTTPS).ask("POST /v1/session", { code }))).toBe(401);
  const inMain = env.DB.prepare("select count(*) as n from web_sessions where org_id = ?").bind(tenant.scope.orgId);
  expect(await inMain.first("n")).toBe(0);
});

test("of two browsers with one code at the same time one is signed in", async () => {
  const tenant = await openTenant();
  const { code } = (await tenant.call(tenant.admin, "POST /v1/sign-in-codes")).body;
  const both = [openBrowser(tenant, HTTPS), openBrowser(tenant, HTTPS)];
  const met = await Promise.all(both.map((browser) => statusOf(browser.ask("POST /v1/session", { code }))));
  expect(met.sort()).toEqual([201, 401]);
});

test("a code ends after five minutes, and with the key that created it", async () => {
  const tenant = await openTenant();
  const browser = openBrowser(tenant, HTTPS);
  const newCode = async (key: string) => (await tenant.call(key, "POST /v1/sign-in-codes")).body.code;
  const late = await newCode(tenant.admin);
  tenant.clock.now += 5 * 60_000;
  expect(await statusOf(browser.ask("POST /v1/session", { code: late }))).toBe(401);
  const key = await tenant.keyWith({ id: `key_${crypto.randomUUID()}` });
  const { who } = (await tenant.call(key, "GET /v1/whoami")).body;
  const code = await newCode(key);
  await tenant.call(tenant.admin, `DELETE /v1/keys/${who}`);
  expect(await statusOf(browser.ask("POST /v1/session", { code }))).toBe(401);
});

test("a pasted key signs in; a wrong key, a trainer's token, both or neither do not", async () => {
  const tenant = await openTenant();
  const browser = openBrowser(tenant, HTTPS);
  const signIn = (body: object) => statusOf(browser.ask("POST /v1/session", body));
  expect(await signIn({ key: tenant.admin })).toBe(201);
  expect(await signIn({ key: mintToken("rk", minting(env, 0)) })).toBe(401);
  expect(await signIn({ key: mintToken("rct", minting(env, 0)) })).toBe(401);
  expect(await signIn({ key: await tenant.keyWith({ expires_at: 1 }) })).toBe(401);
  expect(await signIn({ code: tenant.admin })).toBe(401);
  expect([await signIn({}), await signIn({ key: "x", code: "y" })]).toEqual([400, 400]);
});

test("a key can sign in only some times a minute, since each time adds a row and an audit entry", async () => {
  const tenant = await openTenant();
  const asked: string[] = [];
  const limit = async ({ key }: { key: string }) => ({ success: asked.push(key) < 2 });
  const browser = openBrowser(tenant, HTTPS, { WRONG_KEYS: { limit } });
  const signIn = () => browser.ask("POST /v1/session", { key: tenant.admin });
  expect(await statusOf(signIn())).toBe(201);
  const refused = await signIn();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
  expect(asked).toEqual([expect.stringMatching(/^key_/), asked[0]]);
});

test("a session ends after twelve hours, with its key, by signing out, and when an admin revokes it", async () => {
  const tenant = await openTenant();
  const [old, out, revoked] = [await signedIn(tenant), await signedIn(tenant), await signedIn(tenant)];
  const soon = await signedIn(tenant, await tenant.keyWith({ expires_at: tenant.clock.now + HOUR }));
  const key = await tenant.keyWith({});
  const followed = await signedIn(tenant, key);
  const { who } = (await tenant.call(key, "GET /v1/whoami")).body;
  const { id } = (await (await revoked.ask("GET /v1/whoami")).json<{ session: { id: string } }>()).session;
  const asks = (browser: Browser) => statusOf(browser.ask("GET /v1/whoami"));
  const cookie = out.cookie();
  expect(await statusOf(out.ask("DELETE /v1/session"))).toBe(200);
  expect(out.cookie()).toBe("");
  out.keep(cookie);
  const listed = (await tenant.call(tenant.admin, "GET /v1/sessions")).body.data;
  expect(listed.map((one: { key_id: string }) => one.key_id)).toContain(who);
  expect((await tenant.call(tenant.admin, `DELETE /v1/sessions/${id}`)).status).toBe(200);
  await tenant.call(tenant.admin, `DELETE /v1/keys/${who}`);
  tenant.clock.now += REMEMBERED_MS;
  expect(await Promise.all([out, revoked, followed, old, soon].map(asks))).toEqual([401, 401, 401, 200, 200]);
  // The browser is told to delete a cookie that no longer works.
  expect([out.cookie(), revoked.cookie()]).toEqual(["", ""]);
  tenant.clock.now += HOUR;
  expect(await Promise.all([old, soon].map(asks))).toEqual([200, 401]);
  tenant.clock.now += 11 * HOUR;
  expect(await asks(old)).toBe(401);
});

test("a person's session has the current permissions of the role and ends with the membership", async () => {
  const tenant = await openTenant();
  const person = { id: await joined(tenant.scope.orgId, "viewer") };
  await joined(tenant.scope.orgId, "owner");
  const token = mintToken("rks", minting(env, 0));
  const of = { project_id: null, key_id: null, person_id: person.id };
  const times = { created_at: tenant.clock.now, expires_at: tenant.clock.now + HOUR };
  const row = { id: `ses_${person.id}`, hash: sha256Hex(token), ...of, ...times };
  expect(await beginSession(databaseOf(env), tenant.scope.orgId, row, null)).toBe(true);
  const browser = openBrowser(tenant, HTTPS);
  browser.keep(`__Host-rollcall=${token}`);
  expect(await (await browser.ask("GET /v1/whoami")).json()).toMatchObject({ who: person.id, project: null });
  expect(await statusOf(browser.ask("GET /v1/keys"))).toBe(403);
  await tenant.call(tenant.admin, `PATCH /v1/people/${person.id}`, { role: "owner" });
  tenant.clock.now += REMEMBERED_MS;
  expect(await statusOf(browser.ask("GET /v1/keys"))).toBe(200);
  expect((await tenant.call(tenant.admin, `DELETE /v1/people/${person.id}`)).status).toBe(200);
  tenant.clock.now += REMEMBERED_MS;
  expect(await statusOf(browser.ask("GET /v1/whoami"))).toBe(401);
  expect(await beginSession(databaseOf(env), tenant.scope.orgId, { ...row, id: "ses_2", hash: "2" }, null)).toBe(false);
});

test("a session cannot create codes, so that none outlives its twelve hours", async () => {
  const browser = await signedIn(await openTenant());
  expect(await statusOf(browser.ask("POST /v1/sign-in-codes"))).toBe(403);
});

test("a session of the organisation names its project as a key does", async () => {
  const tenant = await openTenant();
  const browser = await signedIn(tenant);
  const named = { "rollcall-project": tenant.scope.projectId };
  expect(await statusOf(browser.ask("GET /v1/runs"))).toBe(400);
  expect(await statusOf(browser.ask("GET /v1/runs", undefined, named))).toBe(200);
});

const OTHER = "https://other.test";
test.each([
  ["GET /v1/keys", { "sec-fetch-site": "none" }, 200],
  ["GET /v1/keys", { "sec-fetch-site": "same-site" }, 403],
  ["GET /v1/keys", { "sec-fetch-site": "cross-site" }, 403],
  ["GET /v1/keys", { "sec-fetch-site": null }, 403],
  ["GET /v1/keys", { origin: OTHER }, 403],
  ["POST /v1/sign-in-codes", { origin: null }, 403],
  ["PATCH /v1/organization", {}, 200],
  ["PATCH /v1/organization", { "sec-fetch-site": null }, 200],
  ["PATCH /v1/organization", { origin: null }, 403],
  ["PATCH /v1/organization", { origin: OTHER }, 403],
  ["PATCH /v1/organization", { origin: "null" }, 403],
  ["PATCH /v1/organization", { origin: "https://platform.test:444" }, 403],
  ["PATCH /v1/organization", { "sec-fetch-site": "none" }, 403],
])("%s with the cookie and %j is %s: other pages cannot use it", async (route, headers, status) => {
  const browser = await signedIn(await openTenant());
  const body = route.startsWith("PATCH") ? { name: "n" } : undefined;
  expect(await statusOf(browser.ask(route, body, headers))).toBe(status);
});

test.each([
  ["the address that listens", LOCAL, {}, 201],
  ["localhost", "http://localhost:8787", {}, 201],
  ["IPv6", "http://[::1]:8787", {}, 201],
  ["another port", "http://127.0.0.1:8788", {}, 403],
  ["a name that leads here", "http://rebound.test:8787", {}, 403],
  ["another local page", LOCAL, { origin: "http://localhost:3000", "sec-fetch-site": "same-site" }, 403],
])("on one machine a browser signs in at %s", async (_, origin, headers, status) => {
  const tenant = await openTenant();
  const browser = openBrowser(tenant, origin, { LOCAL_PORT: 8787 });
  const reply = await browser.ask("POST /v1/session", { key: tenant.admin }, headers);
  expect(reply.status).toBe(status);
  if (status !== 201) return;
  const cookie = reply.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(/^rollcall-8787=rks_\w+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  // The same cookie reaches every port and name, and only counts at its own.
  const rebound = openBrowser(tenant, "http://rebound.test:8787", { LOCAL_PORT: 8787 });
  rebound.keep(browser.cookie());
  expect([await statusOf(browser.ask("GET /v1/whoami")), await statusOf(rebound.ask("GET /v1/whoami"))]).toEqual([
    200, 401,
  ]);
});

test("a deployment signs nobody in over plain http, and two cookies of the name count as none", async () => {
  const tenant = await openTenant();
  const plain = openBrowser(tenant, "http://platform.test");
  expect(await statusOf(plain.ask("POST /v1/session", { key: tenant.admin }))).toBe(403);
  const browser = await signedIn(tenant);
  browser.keep(`${browser.cookie()}; ${browser.cookie()}`);
  expect(await statusOf(browser.ask("GET /v1/whoami"))).toBe(401);
});

test("wrong codes and wrong cookies are counted by address, as wrong keys are", async () => {
  const tenant = await openTenant();
  const counted: string[] = [];
  const limit = async ({ key }: RateLimitOptions) => {
    counted.push(key);
    return { success: counted.length < 3 };
  };
  const [browser, address] = [openBrowser(tenant, HTTPS, { WRONG_KEYS: { limit } }), crypto.randomUUID()];
  const from = { "cf-connecting-ip": address };
  const guess = () => statusOf(browser.ask("POST /v1/session", { code: "guess" }, from));
  browser.keep("__Host-rollcall=guess");
  expect([await statusOf(browser.ask("GET /v1/whoami", undefined, from)), await guess(), await guess()]).toEqual([
    401, 401, 429,
  ]);
  expect(counted).toEqual([address, address, address]);
});

test("the tables contain no codes or cookie values, and ended rows are deleted when others are created", async () => {
  const tenant = await openTenant();
  const { code } = (await tenant.call(tenant.admin, "POST /v1/sign-in-codes")).body;
  const browser = await signedIn(tenant);
  const rowsOf = async (table: string) => {
    const found = env.DB.prepare(`select * from ${table} where org_id = ?`).bind(tenant.scope.orgId);
    return (await found.all()).results;
  };
  const stored = JSON.stringify([await rowsOf("web_sessions"), await rowsOf("sign_in_codes")]);
  expect(stored).toContain(sha256Hex(code));
  for (const secret of [code, browser.cookie().split("=")[1]]) expect(stored).not.toContain(secret);
  tenant.clock.now += 12 * HOUR;
  await signedIn(tenant);
  expect([(await rowsOf("web_sessions")).length, (await rowsOf("sign_in_codes")).length]).toEqual([1, 0]);
});

test("a key has at most fifty sessions: the oldest ends", async () => {
  const tenant = await openTenant();
  const first = await signedIn(tenant);
  const { key_id } = (await tenant.call(tenant.admin, "GET /v1/sessions")).body.data[0];
  const times = { created_at: tenant.clock.now + 1, expires_at: tenant.clock.now + HOUR };
  const of = { org_id: tenant.scope.orgId, key_id };
  const row = (n: number) => ({ ...of, id: `ses_${key_id}_${n}`, hash: `${key_id}_${n}`, ...times });
  const d1 = drizzle(env.DB);
  for (let n = 0; n < 49; n += 1) await d1.insert(webSessions).values(row(n));
  tenant.clock.now += REMEMBERED_MS;
  expect(await statusOf(first.ask("GET /v1/whoami"))).toBe(200);
  await signedIn(tenant);
  tenant.clock.now += REMEMBERED_MS;
  expect(await statusOf(first.ask("GET /v1/whoami"))).toBe(401);
});

test("a caller without admin lists and ends only the sessions of its own key", async () => {
  const tenant = await openTenant();
  const { call, clock } = tenant;
  const [mine, other] = [
    await tenant.keyWith({ scopes: ["runs:read"] }),
    await tenant.keyWith({ scopes: ["runs:read"] }),
  ];
  const [first, second, theirs] = [
    await signedIn(tenant, mine),
    await signedIn(tenant, mine),
    await signedIn(tenant, other),
  ];
  const idOf = async (browser: Browser) => {
    return (await (await browser.ask("GET /v1/whoami")).json<{ session: { id: string } }>()).session.id;
  };
  const [firstId, secondId, theirId] = [await idOf(first), await idOf(second), await idOf(theirs)];
  const idsFor = async (key: string) => {
    return (await call(key, "GET /v1/sessions")).body.data.map(({ id }: { id: string }) => id).sort();
  };
  expect(await idsFor(mine)).toEqual([firstId, secondId].sort());
  expect(await idsFor(other)).toEqual([theirId]);
  expect(await idsFor(tenant.admin)).toEqual([firstId, secondId, theirId].sort());
  expect((await call(mine, `GET /v1/sessions?after=${theirId}`)).status).toBe(400);
  expect((await call(mine, `DELETE /v1/sessions/${theirId}`)).status).toBe(404);
  // One browser can end the other, and cannot end a stranger's session.
  expect(await statusOf(first.ask(`DELETE /v1/sessions/${theirId}`))).toBe(404);
  expect(await statusOf(first.ask(`DELETE /v1/sessions/${secondId}`))).toBe(200);
  clock.now += REMEMBERED_MS;
  const asks = (browser: Browser) => statusOf(browser.ask("GET /v1/whoami"));
  expect(await Promise.all([first, second, theirs].map(asks))).toEqual([200, 401, 200]);
  expect((await call(tenant.admin, `DELETE /v1/sessions/${theirId}`)).status).toBe(200);
});

test("a person's sessions are those that they and their keys started, in one organisation", async () => {
  const [tenant, elsewhere] = [await openTenant(), await openTenant()];
  const { orgId } = tenant.scope;
  const person = await joined(orgId, "viewer");
  const [theirs, strangers] = [await tenant.keyWith({ person_id: person }), await tenant.keyWith({})];
  await signedIn(tenant, theirs);
  await signedIn(tenant, strangers);
  const { who } = (await tenant.call(theirs, "GET /v1/whoami")).body;
  const row = { id: `ses_${person}`, hash: person, project_id: null, key_id: null, person_id: person };
  const times = { created_at: tenant.clock.now, expires_at: tenant.clock.now + HOUR };
  expect(await beginSession(databaseOf(env), orgId, { ...row, ...times }, null)).toBe(true);
  const seenBy = async (org: string, whose: string, projectId: string | null = null) => {
    const page = { after: null, limit: 10, order: "asc" } as const;
    const found = await listWebSessions(databaseOf(env), { orgId: org, projectId, whose }, page);
    return found.map(({ key_id, person_id }) => key_id ?? person_id).sort();
  };
  expect(await seenBy(orgId, person)).toEqual([who, person].sort());
  expect(await seenBy(orgId, who)).toEqual([who]);
  expect(await seenBy(elsewhere.scope.orgId, person)).toEqual([]);
});
