import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { callerOfAccess } from "../../src/accounts/access-identity.ts";
import { DEFAULT_LIMITS, PERMISSIONS_OF, type Role } from "../../src/contract/identity.ts";
import type { SignOrder } from "../fakes/access-team.ts";
import { openTestApi } from "../kernel/http/test-api.ts";
import { admit } from "./admit.ts";

const NOW = 1_792_000_000_000;
const SECONDS = NOW / 1000;
const AUDIENCE = "audience-tag";

/** A deployment with its own Access team, and assertions of that team. */
function behindAccess(name = "ann") {
  const team = `${env.ACCESS_URL}/${crypto.randomUUID()}`;
  const deployment = { ...env, ACCESS_TEAM_URL: `${team}/`, ACCESS_AUDIENCE: AUDIENCE };
  const tell = async (what: string, body?: unknown) =>
    (await fetch(`${team}/${what}`, { method: "POST", body: JSON.stringify(body ?? null) })).json<unknown>();
  const email = `${name}-${crypto.randomUUID()}@example.com`;
  const claims = { iss: team, aud: [AUDIENCE], email, iat: SECONDS - 10, exp: SECONDS + 600 };
  const sign = async (changes: object = {}, order: Partial<SignOrder> = {}) =>
    String(await tell("sign", { claims: { ...claims, ...changes }, ...order }));
  const ask = (assertion: string, { now = NOW, ...init }: RequestInit & { now?: number; headers?: object } = {}) => {
    const headers = { "cf-access-jwt-assertion": assertion, ...init.headers };
    return callerOfAccess(deployment, new Request("https://platform.test/v1/runs", { ...init, headers }), now);
  };
  return { team, deployment, tell, email, sign, ask };
}

/** Makes the person who proved the address a member of a new organisation. */
async function joined(email: string, role: Role = "developer") {
  const scope = { orgId: `org_${crypto.randomUUID()}`, projectId: `pj_${crypto.randomUUID()}` };
  await admit(scope);
  const insert = "insert into people (id, email, created_at, proven_at) values (?, ?, 0, 0) on conflict do nothing";
  await env.DB.prepare(insert).bind(`per_${crypto.randomUUID()}`, email).run();
  const member =
    "insert into members (org_id, person_id, role, created_at) select ?1, id, ?2, 0 from people where email = ?3";
  await env.DB.prepare(member).bind(scope.orgId, role, email).run();
  const personId = await env.DB.prepare("select id from people where email = ?").bind(email).first<string>("id");
  return { ...scope, personId };
}

test.each(["owner", "developer", "viewer"] as const)(
  "Access signs in a %s until the assertion expires",
  async (role) => {
    const { email, sign, ask } = behindAccess();
    const { orgId, personId } = await joined(email, role);
    const limit = { own: null, organization: DEFAULT_LIMITS.requests_per_minute };
    expect(await ask(await sign({ email: email.toUpperCase() }))).toEqual({
      orgId,
      projectId: null,
      permissions: PERMISSIONS_OF[role],
      who: personId,
      runId: null,
      expiresAt: (SECONDS + 600) * 1000,
      perMinute: limit,
    });
  },
);

test("an assertion of another team, application or time, or without a person, signs nobody in", async () => {
  const { email, sign, ask } = behindAccess("kay");
  await joined(email);
  const wrong = [
    { iss: "https://other.cloudflareaccess.com" },
    { aud: ["another-application"] },
    { exp: SECONDS - 31 },
    { exp: undefined },
    { nbf: SECONDS + 120 },
    { email: undefined, common_name: "service-token" },
    { email: 7 },
    { email: `nobody-${email}` },
    // With the Kelvin sign, whose lower case is k.
    { email: email.replace("k", "\u212a") },
  ];
  for (const changes of wrong) expect(await ask(await sign(changes)), JSON.stringify(changes)).toBeNull();
  expect(await ask(await sign())).not.toBeNull();
});

test("an assertion that Access did not sign signs nobody in", async () => {
  const { email, sign, ask } = behindAccess();
  await joined(email);
  const good = await sign();
  const [head = "", body = "", signature = ""] = good.split(".");
  const none = btoa(JSON.stringify({ alg: "none" })).replaceAll("=", "");
  const stranger = behindAccess();
  const forgeries = [
    "",
    "x",
    "a.b.c",
    `${head}.${body}.`,
    `${none}.${body}.`,
    `${head}.${body}.${signature.split("").reverse().join("")}`,
    await sign({}, { forged: true }),
    (await stranger.sign()).replace(/^[^.]*\.[^.]*/, `${head}.${body}`),
    `${good}${"x".repeat(20_000)}`,
  ];
  for (const forged of forgeries) expect(await ask(forged), forged.slice(0, 40)).toBeNull();
});

test("a deployment without a team or an audience ignores assertions", async () => {
  const { deployment, email, sign } = behindAccess();
  await joined(email);
  const headers = { "cf-access-jwt-assertion": await sign() };
  const request = new Request("https://platform.test/v1/runs", { headers });
  for (const off of [{ ACCESS_TEAM_URL: "" }, { ACCESS_AUDIENCE: "" }]) {
    expect(await callerOfAccess({ ...deployment, ...off }, request, NOW)).toBeNull();
  }
  expect(await callerOfAccess(deployment, request, NOW)).not.toBeNull();
});

test("the team's keys are read once an hour, and a new key is found within a minute", async () => {
  const { email, sign, ask, tell } = behindAccess();
  await joined(email);
  const before = await sign({ exp: SECONDS + 90_000 });
  for (let at = 0; at < 3; at += 1) expect(await ask(before)).not.toBeNull();
  expect(await tell("asked")).toBe(1);
  await tell("rotate");
  const after = await sign({ exp: SECONDS + 90_000 });
  expect(await ask(after, { now: NOW + 59_000 })).toBeNull();
  expect(await tell("asked")).toBe(1);
  expect(await ask(after, { now: NOW + 60_000 })).not.toBeNull();
  expect(await ask(before, { now: NOW + 61_000 })).not.toBeNull();
  expect(await tell("asked")).toBe(2);
  await ask(before, { now: NOW + 60_000 + 3_600_000 });
  expect(await tell("asked")).toBe(3);
});

test("if keys cannot be read it is an error, and keys read before are used for their hour", async () => {
  const { email, sign, ask, tell } = behindAccess();
  await joined(email);
  const assertion = await sign({ exp: SECONDS + 90_000 });
  expect(await ask(assertion)).not.toBeNull();
  await tell("fail");
  expect(await ask(assertion, { now: NOW + 3_599_000 })).not.toBeNull();
  await expect(ask(assertion, { now: NOW + 3_600_000 })).rejects.toThrow("answered with 500");
});

test("a page of another origin cannot change anything as the signed-in person", async () => {
  const { email, sign, ask } = behindAccess();
  await joined(email);
  const assertion = await sign();
  const from = (method: string, headers: Record<string, string>) => ask(assertion, { method, headers });
  expect(await from("POST", { origin: "https://evil.test" })).toBeNull();
  expect(await from("DELETE", { "sec-fetch-site": "cross-site" })).toBeNull();
  expect(await from("POST", { "sec-fetch-site": "same-site" })).toBeNull();
  expect(await from("POST", { origin: "https://platform.test", "sec-fetch-site": "same-origin" })).not.toBeNull();
  expect(await from("POST", {})).not.toBeNull();
  expect(await from("GET", { origin: "https://evil.test" })).not.toBeNull();
});

test("a member of several organisations names one of them", async () => {
  const { email, sign, ask } = behindAccess();
  const [one, other] = [await joined(email, "viewer"), await joined(email, "owner")];
  const foreign = await joined(`bob-${email}`);
  const assertion = await sign();
  const inside = (id: string) => ask(assertion, { headers: { "rollcall-organization": id } });
  expect(await ask(assertion)).toBe("several");
  expect(await inside(one.orgId)).toMatchObject({ orgId: one.orgId, permissions: PERMISSIONS_OF.viewer });
  expect(await inside(other.orgId)).toMatchObject({ orgId: other.orgId, permissions: PERMISSIONS_OF.owner });
  expect(await inside(foreign.orgId)).toBeNull();
  await env.DB.prepare("update organizations set deleted_at = 1 where id = ?").bind(other.orgId).run();
  expect(await inside(other.orgId)).toBeNull();
  expect(await ask(assertion)).toMatchObject({ orgId: one.orgId });
});

test("a member of several organisations who names none is asked to, and does not count as a wrong key", async () => {
  const { deployment, email, sign } = behindAccess();
  const { app } = await openTestApi({ listEnvironments: async () => ({ rows: [], limit: 1 }) });
  const { orgId, projectId } = await joined(email);
  await joined(email, "viewer");
  const assertion = await sign({ exp: 2_000_000_000 });
  const ask = async (named: object) => {
    const headers = { "cf-access-jwt-assertion": assertion, "rollcall-project": projectId, ...named };
    return await app.request("https://platform.test/v1/environments", { headers }, deployment);
  };
  for (let at = 0; at < 200; at += 1) {
    const { status } = await ask({});
    if (status !== 400) expect(status).toBe(400);
  }
  const { error } = await (await ask({})).json<{ error: object }>();
  expect(error).toMatchObject({ code: "invalid_request", param: "Rollcall-Organization" });
  expect((await ask({ "rollcall-organization": orgId })).status).toBe(200);
});

test("a request with a valid assertion is let in, except for a change from a page of another origin", async () => {
  const { deployment, email, sign } = behindAccess();
  const scopes: unknown[] = [];
  const { app } = await openTestApi({
    listEnvironments: async () => ({ rows: [], limit: 1 }),
    cancelRun: async (_env, scope) => {
      scopes.push(scope);
      return { ok: false, error: { code: "conflict", message: "it has ended", param: null } };
    },
  });
  const { orgId, projectId } = await joined(email);
  const assertion = await sign({ exp: 2_000_000_000 });
  const ask = async (path: string, init: RequestInit, headers: Record<string, string> = {}) => {
    const all = { "cf-access-jwt-assertion": assertion, "rollcall-project": projectId, ...headers };
    return (await app.request(`https://platform.test${path}`, { ...init, headers: all }, deployment)).status;
  };
  expect(await ask("/v1/environments", {})).toBe(200);
  const cancel = { method: "POST" };
  expect(await ask("/v1/runs/run_x/cancel", cancel)).toBe(409);
  expect(await ask("/v1/runs/run_x/cancel", cancel, { origin: "https://elsewhere.example" })).toBe(401);
  expect(await ask("/v1/environments", {}, { "cf-access-jwt-assertion": `${assertion}x` })).toBe(401);
  expect(scopes).toEqual([{ orgId, projectId }]);
});
