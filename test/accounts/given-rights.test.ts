/** What happens to a member's keys, invitations and links when the role is reduced or the membership ends. */
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { beforeEach, expect, test } from "vitest";
import { insertApiKey } from "../../src/accounts/queries/api-keys.ts";
import { whoStillMay } from "../../src/accounts/queries/standing.ts";
import type { Role } from "../../src/contract/identity.ts";
import { mintRunId } from "../../src/core/ids.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { endpoints, runs } from "../../src/kernel/db/schema.ts";
import { minting } from "../../src/kernel/kit/secrets.ts";
import { openBrowser } from "../kernel/http/browser.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";
import { keyRow } from "./admit.ts";
import { openTenant, type Tenant } from "./tenant.ts";

const HTTPS = "https://platform.test";
const emailOf = (name: string) => `${name}-${crypto.randomUUID()}@example.com`;

let tenant: Tenant;
/** Another owner, and that owner's key. */
let bob: { readonly id: string; readonly email: string; readonly key: string };

beforeEach(async () => {
  tenant = await openTenant();
  bob = await join("owner");
  await join("owner");
});

async function invite(key: string, role: Role, email = emailOf("ann")): Promise<string> {
  const { status, body } = await tenant.call(key, "POST /v1/invitations", { email, role });
  expect(status).toBe(201);
  return body.token;
}

const accept = (token: string) => tenant.call(token, "POST /v1/invitations/accept", { token });

async function join(role: Role) {
  const { status, body } = await accept(await invite(tenant.admin, role));
  expect(status).toBe(201);
  return { ...body.person, key: body.key.key };
}

async function makeKey(by: string, scopes: readonly string[], more: object = {}) {
  const { status, body } = await tenant.call(by, "POST /v1/keys", { name: "program", scopes, ...more });
  expect(status).toBe(201);
  return body;
}

const become = async (role: Role) =>
  expect((await tenant.call(tenant.admin, `PATCH /v1/people/${bob.id}`, { role })).status).toBe(200);
const remove = async () => expect((await tenant.call(tenant.admin, `DELETE /v1/people/${bob.id}`)).status).toBe(200);
/** Moves the clock on, so that the caches of isolates expire. */
const later = () => {
  tenant.clock.now += 10_000;
};
const rolesOf = async (): Promise<string[][]> => {
  const { body } = await tenant.call(tenant.admin, "GET /v1/people");
  return body.data.map(({ id, role }: { id: string; role: Role }) => [id, role]);
};
const statusOf = async (key: string) => (await tenant.call(key, "GET /v1/whoami")).status;

test.each(["demoted", "removed"])("invitations that an owner made with any key end when they are %s", async (how) => {
  const program = await makeKey(bob.key, ["admin"]);
  const made = [await invite(bob.key, "owner"), await invite(program.key, "viewer")];
  const others = await invite(tenant.admin, "viewer");
  await (how === "demoted" ? become("developer") : remove());
  for (const token of made) expect((await accept(token)).status).toBe(404);
  expect((await accept(others)).status).toBe(201);
});

test("an owner who stays an owner keeps their invitations", async () => {
  const token = await invite(bob.key, "owner");
  await become("owner");
  expect((await accept(token)).status).toBe(201);
});

test("an invitation from a revoked key, or one created during a change of role, is refused", async () => {
  const program = await makeKey(tenant.admin, ["admin"]);
  const token = await invite(program.key, "owner");
  const late = await invite(bob.key, "owner");
  await env.DB.prepare("update members set role = 'viewer' where person_id = ?").bind(bob.id).run();
  expect((await tenant.call(tenant.admin, `DELETE /v1/keys/${program.id}`)).status).toBe(200);
  for (const one of [token, late]) {
    const message = expect.stringContaining("may no longer invite people");
    expect(await accept(one)).toMatchObject({ status: 409, body: { error: { message } } });
  }
});

test("an invitation stays valid after its maker's key was rotated", async () => {
  const program = await makeKey(tenant.admin, ["admin"]);
  const token = await invite(program.key, "viewer");
  expect((await tenant.call(tenant.admin, `POST /v1/keys/${program.id}/rotate`, { overlap_s: 0 })).status).toBe(201);
  later();
  expect((await accept(token)).status).toBe(201);
});

test("an invitation to a demoted member's own address ends if it gives more than the new role", async () => {
  const [more, as] = [await invite(tenant.admin, "owner", bob.email), await invite(tenant.admin, "viewer", bob.email)];
  await become("developer");
  expect((await accept(more)).status).toBe(404);
  expect((await accept(as)).status).toBe(201);
});

test("keys that a demoted member made for programs are revoked only if their scopes exceed the role", async () => {
  const above = await makeKey(bob.key, ["admin"]);
  const audits = await makeKey(bob.key, ["runs:read", "audit:read"]);
  const within = await makeKey(bob.key, ["runs:write"]);
  const ofKey = await makeKey(above.key, ["billing:write"]);
  const others = await makeKey(tenant.admin, ["admin"]);
  await become("developer");
  later();
  for (const { key } of [above, audits, ofKey]) expect(await statusOf(key)).toBe(401);
  for (const { key } of [within, others]) expect(await statusOf(key)).toBe(200);
  expect((await tenant.call(tenant.admin, `GET /v1/keys/${above.id}`)).body.revoked_at).not.toBeNull();
  await become("viewer");
  later();
  expect(await statusOf(within.key)).toBe(401);
});

test("keys of a removed member's programs are revoked, except those that another person has rotated", async () => {
  const first = await makeKey(bob.key, ["runs:read"]);
  const second = await makeKey(bob.key, ["runs:read"]);
  const rotated = (await tenant.call(tenant.admin, `POST /v1/keys/${first.id}/rotate`, {})).body;
  const itself = (await tenant.call(bob.key, `POST /v1/keys/${second.id}/rotate`, {})).body;
  await remove();
  later();
  for (const { key } of [first, second, itself]) expect(await statusOf(key)).toBe(401);
  expect(await statusOf(rotated.key)).toBe(200);
});

test("no key is created in the name of a member who may no longer grant its scopes", async () => {
  const row = (scopes: readonly ["admin"] | readonly ["runs:write"]) => {
    const { org_id: _, ...key } = keyRow(tenant.scope, crypto.randomUUID());
    return { ...key, scopes, maker_id: bob.id };
  };
  await become("developer");
  expect(await insertApiKey(databaseOf(env), tenant.scope.orgId, row(["admin"]), null)).toBe("refused");
  expect(await insertApiKey(databaseOf(env), tenant.scope.orgId, row(["runs:write"]), null)).toBe("inserted");
  await remove();
  expect(await insertApiKey(databaseOf(env), tenant.scope.orgId, row(["runs:write"]), null)).toBe("refused");
});

test("a browser that a removed member's program signed in is signed out", async () => {
  const program = await makeKey(bob.key, ["runs:read"]);
  const browser = openBrowser(tenant, HTTPS);
  const { code } = (await tenant.call(program.key, "POST /v1/sign-in-codes")).body;
  const waiting = (await tenant.call(program.key, "POST /v1/sign-in-codes")).body.code;
  expect((await browser.ask("POST /v1/session", { code })).status).toBe(201);
  await remove();
  later();
  expect((await browser.ask("GET /v1/whoami")).status).toBe(401);
  expect((await openBrowser(tenant, HTTPS).ask("POST /v1/session", { code: waiting })).status).toBe(401);
});

test("a trigger that a removed member's program created starts no runs", async () => {
  const program = await makeKey(bob.key, ["triggers:write", "runs:write"]);
  const may = () => whoStillMay(databaseOf(env), tenant.scope, program.id, "runs:write", tenant.clock.now);
  expect(await may()).toBe(program.id);
  await remove();
  expect(await may()).toBeNull();
});

test.each(["demoted", "removed"])("a link to a report ends when its creator is %s", async (how) => {
  const id = await endedRun();
  const header = { "rollcall-project": tenant.scope.projectId };
  const linkBy = async (key: string) => {
    const { status, body } = await tenant.call(key, `POST /v1/runs/${id}/report-links`, {}, header);
    expect(status).toBe(201);
    return new URL(body.url).hash.slice(1);
  };
  const [theirs, others] = [await linkBy(bob.key), await linkBy(tenant.admin)];
  const read = async (token: string) => (await tenant.call(token, "GET /v1/shared-report")).status;
  expect([await read(theirs), await read(others)]).toEqual([200, 200]);
  await (how === "demoted" ? become("viewer") : remove());
  later();
  expect([await read(theirs), await read(others)]).toEqual([401, 200]);
});

test.each(["demoted", "removed"])(
  "a person who was just %s can grant nothing, whatever isolates have cached",
  async (how) => {
    const program = await makeKey(bob.key, ["runs:read"]);
    const friend = await join("viewer");
    const other = await makeKey(tenant.admin, ["runs:read"]);
    expect(await statusOf(bob.key)).toBe(200);
    await (how === "demoted" ? become("viewer") : remove());
    const changes = [
      [`PATCH /v1/people/${bob.id}`, { role: "owner" }],
      [`PATCH /v1/people/${friend.id}`, { role: "owner" }],
      [`PATCH /v1/keys/${program.id}`, { scopes: ["admin"] }],
      [`PATCH /v1/keys/${other.id}`, { scopes: ["admin"] }],
      [`DELETE /v1/people/${friend.id}`, undefined],
    ] as const;
    for (const [route, body] of changes) {
      const { status } = await tenant.call(bob.key, route, body);
      expect([route, status >= 400 && status < 500]).toEqual([route, true]);
    }
    later();
    const roles = await rolesOf();
    expect(roles).toContainEqual([friend.id, "viewer"]);
    expect(roles).not.toContainEqual([bob.id, "owner"]);
  },
);

test("a request whose sender lost the permission before its body arrived changes nothing", async () => {
  const friend = await join("viewer");
  const { readable, writable } = new IdentityTransformStream();
  const reply = tenant.ask(`/v1/people/${friend.id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${bob.key}`, "content-type": "application/json" },
    body: readable,
  });
  const writer = writable.getWriter();
  const send = (text: string) => writer.write(new TextEncoder().encode(text));
  // The next piece is sent once the first is read.
  await send('{"role":');
  await become("viewer");
  later();
  await Promise.all([send('"owner"}'), writer.close(), reply]);
  expect((await reply).status).toBe(401);
  expect(await rolesOf()).toContainEqual([friend.id, "viewer"]);
});

test("a key whose scopes a member widened ends with that member, whoever created it", async () => {
  const other = await makeKey(tenant.admin, ["runs:read"]);
  expect((await tenant.call(bob.key, `PATCH /v1/keys/${other.id}`, { scopes: ["admin"] })).status).toBe(200);
  expect(await statusOf(other.key)).toBe(200);
  await remove();
  later();
  expect(await statusOf(other.key)).toBe(401);
});

async function endedRun(): Promise<string> {
  const owner = { org_id: tenant.scope.orgId, project_id: tenant.scope.projectId };
  const endpoint = endpointRow();
  const id = mintRunId(minting(env, tenant.clock.now));
  const d1 = drizzle(env.DB);
  await d1.batch([
    d1.insert(endpoints).values({ ...endpoint, ...owner }),
    d1.insert(runs).values({ ...runRow(endpoint, { id, status: "completed" }), ...owner }),
  ]);
  return id;
}
