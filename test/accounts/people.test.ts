import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { PERMISSIONS, PERMISSIONS_OF, permits, type Role } from "../../src/contract/identity.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { sha256Hex } from "../../src/kernel/kit/secrets.ts";
import { openTenant, type Tenant } from "./tenant.ts";

const DAY_MS = 24 * 3600 * 1000;

/** All scopes of a role. */
const allowed = (role: Role) => PERMISSIONS.filter((one) => permits(PERMISSIONS_OF[role], one));

const emailOf = (name: string) => `${name}-${crypto.randomUUID()}@example.com`;

async function invited({ call, admin }: Tenant, role: Role, email = emailOf("ann")) {
  const { status, body } = await call(admin, "POST /v1/invitations", { email, role });
  expect(status).toBe(201);
  return body;
}

const accept = ({ call, token }: Tenant, invitation: string, name: string | null = "Ann") =>
  call(token, "POST /v1/invitations/accept", { token: invitation, name });

/** Makes a person a member with that role; returns the person and their key. */
async function join(tenant: Tenant, role: Role, email = emailOf("ann"), key = tenant.token) {
  const { status, body } = await accept({ ...tenant, token: key }, (await invited(tenant, role, email)).token);
  expect(status).toBe(201);
  return { ...body.person, key: body.key.key, keyId: body.key.id };
}

test("an invitation's token is shown once, stored only as a hash, and valid for 7 days", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const { token, url: _, ...view } = await invited(tenant, "developer", "Ann@Example.COM");
  const now = clock.now / 1000;
  expect(view).toEqual({
    object: "invitation",
    id: expect.stringMatching(/^inv_/),
    email: "ann@example.com",
    role: "developer",
    invited_by: expect.stringMatching(/^key_/),
    created_at: now,
    expires_at: now + 7 * 24 * 3600,
    accepted_at: null,
  });
  expect(token).toMatch(/^rki_/);
  expect((await call(admin, "GET /v1/invitations")).body.data).toEqual([view]);
  const stored = await env.DB.prepare("select hash from invitations where id = ?").bind(view.id).first("hash");
  expect(stored).toBe(sha256Hex(token));
});

test.each(["owner", "developer", "viewer"] as const)(
  "a person who accepts becomes a %s, with a key of that role",
  async (role) => {
    const tenant = await openTenant();
    const { call, admin, scope, clock } = tenant;
    const { id, email, token } = await invited(tenant, role);
    const { status, body } = await accept(tenant, token);
    expect(status).toBe(201);
    const person = {
      object: "person",
      id: expect.stringMatching(/^per_/),
      email,
      email_proven: false,
      name: "Ann",
      role,
    };
    expect(body).toEqual({
      organization: { id: scope.orgId, name: scope.orgId },
      person: { ...person, created_at: clock.now / 1000 },
      key: expect.objectContaining({ person_id: body.person.id, project_id: null, scopes: PERMISSIONS_OF[role] }),
    });
    expect((await call(admin, "GET /v1/people")).body.data).toEqual([body.person]);
    const invitations = (await call(admin, "GET /v1/invitations")).body.data;
    expect(invitations).toMatchObject([{ id, accepted_at: clock.now / 1000 }]);
    const who = (await call(body.key.key, "GET /v1/whoami")).body;
    expect(who).toMatchObject({ who: body.key.id, scopes: allowed(role) });
    const header = { "rollcall-project": scope.projectId };
    const secret = { name: "SEARCH_KEY", value: "s3arch-value" };
    const may = role === "viewer" ? 403 : 201;
    expect((await call(body.key.key, "POST /v1/secrets", secret, header)).status).toBe(may);
    expect((await call(body.key.key, "GET /v1/people")).status).toBe(role === "owner" ? 200 : 403);
  },
);

test("of two people who accept at once one becomes a member, and nobody later", async () => {
  const tenant = await openTenant();
  const { token } = await invited(tenant, "viewer");
  const both = await Promise.all([1, 2].map(() => accept(tenant, token)));
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const used = { status: 409, body: { error: { message: "this invitation was already accepted" } } };
  expect(await accept(tenant, token)).toMatchObject(used);
  const keys = env.DB.prepare("select count(*) n from api_keys where org_id = ? and person_id is not null");
  expect(await keys.bind(tenant.scope.orgId).first("n")).toBe(1);
});

test("an invitation that expired, was revoked or never existed gives nothing", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const gone = await invited(tenant, "owner");
  expect((await call(admin, `DELETE /v1/invitations/${gone.id}`)).body).toEqual({
    object: "invitation",
    id: gone.id,
    deleted: true,
  });
  const late = await invited(tenant, "owner");
  clock.now += 7 * DAY_MS;
  expect((await accept(tenant, gone.token)).status).toBe(404);
  const expired = await accept(tenant, late.token);
  expect(expired).toMatchObject({ status: 409, body: { error: { message: expect.stringContaining("expired") } } });
  for (const other of ["rki_x", admin, late.token.slice(0, -1)]) {
    const refused = await accept(tenant, other);
    expect(refused).toMatchObject({ status: 404, body: { error: { param: "token" } } });
  }
  expect((await call(admin, "GET /v1/people")).body.data).toEqual([]);
});

test("an invitation to an organisation that is being deleted gives nothing", async () => {
  const tenant = await openTenant();
  const { token } = await invited(tenant, "owner");
  await env.DB.prepare("update organizations set deleted_at = 1 where id = ?").bind(tenant.scope.orgId).run();
  expect((await accept(tenant, token)).status).toBe(404);
});

test("a member who accepts another invitation with their key gets another key and keeps the role", async () => {
  const tenant = await openTenant();
  const email = emailOf("ann");
  const first = await join(tenant, "viewer", email);
  const again = await join(tenant, "owner", email.toUpperCase(), first.key);
  expect(again).toMatchObject({ id: first.id, role: "viewer" });
  expect(again.key).not.toBe(first.key);
  for (const { key } of [first, again]) {
    expect((await tenant.call(key, "GET /v1/whoami")).body.scopes).toEqual(allowed("viewer"));
  }
});

test("one person can be a member of two organisations, and a key of one does not work in the other", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const email = emailOf("ann");
  const here = await join(one, "owner", email);
  const there = await join(other, "viewer", email, here.key);
  expect(here.id).toBe(there.id);
  expect((await one.call(there.key, "GET /v1/people")).status).toBe(403);
  await one.call(one.admin, `PATCH /v1/people/${here.id}`, { role: "owner" });
  await join(one, "owner");
  expect((await one.call(one.admin, `DELETE /v1/people/${here.id}`)).status).toBe(200);
  one.clock.now += 10_000;
  other.clock.now += 10_000;
  expect((await one.call(here.key, "GET /v1/whoami")).status).toBe(401);
  expect((await other.call(there.key, "GET /v1/whoami")).status).toBe(200);
});

test("a person's name in one organisation is not visible in another", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const email = emailOf("ann");
  const here = (await accept(one, (await invited(one, "viewer", email)).token, "Ann of One")).body;
  expect(here.person.name).toBe("Ann of One");
  const { body } = await accept({ ...other, token: here.key.key }, (await invited(other, "viewer", email)).token, null);
  expect(body.person.id).toBe(here.person.id);
  expect([body.person.name, body.key.name]).toEqual([null, email]);
  expect(JSON.stringify((await other.call(other.admin, "GET /v1/people")).body)).not.toContain("Ann");
  expect((await one.call(one.admin, "GET /v1/people")).body.data[0].name).toBe("Ann of One");
});

test("a person without any membership has no row", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const email = emailOf("ann");
  const rows = () => env.DB.prepare("select count(*) as n from people where email = ?").bind(email).first("n");
  const { token } = await invited(one, "viewer", email);
  const full = "update organizations set deleted_at = 1 where id = ?";
  const { id, key } = await join(other, "viewer", email);
  expect(await rows()).toBe(1);
  await join(one, "viewer", email, key);
  expect((await one.call(one.admin, `DELETE /v1/people/${id}`)).status).toBe(200);
  expect(await rows()).toBe(1);
  expect((await other.call(other.admin, `DELETE /v1/people/${id}`)).status).toBe(200);
  expect(await rows()).toBe(0);
  expect((await accept(one, token)).status).toBe(404);
  const { token: again } = await invited(one, "viewer", email);
  await env.DB.prepare(full).bind(one.scope.orgId).run();
  expect((await accept(one, again)).status).toBe(404);
  expect(await rows()).toBe(0);
});

test("a person's keys follow the role, up and down", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const { id, key, keyId } = await join(tenant, "viewer");
  for (const role of ["developer", "owner", "viewer"] as const) {
    await join(tenant, "owner");
    expect((await call(admin, `PATCH /v1/people/${id}`, { role })).body).toMatchObject({ id, role });
    clock.now += 10_000;
    expect((await call(key, "GET /v1/whoami")).body.scopes).toEqual(allowed(role));
    expect((await call(admin, `GET /v1/keys/${keyId}`)).body.scopes).toEqual(PERMISSIONS_OF[role]);
  }
  const refused = await call(admin, `PATCH /v1/keys/${keyId}`, { scopes: ["runs:read"] });
  expect(refused).toMatchObject({ status: 409, body: { error: { param: "scopes" } } });
});

test("the only owner cannot be removed or demoted, also when two owners remove each other", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const email = emailOf("owner");
  const owner = await join(tenant, "owner", email);
  await join(tenant, "developer");
  const waiting = await invited(tenant, "owner", email);
  const only = { status: 409, body: { error: { code: "conflict", param: "id" } } };
  expect(await call(admin, `DELETE /v1/people/${owner.id}`)).toMatchObject(only);
  expect(await call(admin, `PATCH /v1/people/${owner.id}`, { role: "viewer" })).toMatchObject(only);
  expect((await call(admin, `PATCH /v1/people/${owner.id}`, { role: "owner" })).status).toBe(200);
  clock.now += 10_000;
  expect((await call(owner.key, "GET /v1/people")).status).toBe(200);
  expect((await accept({ ...tenant, token: owner.key }, waiting.token)).status).toBe(201);
  const second = await join(tenant, "owner");
  const both = await Promise.all([owner, second].map(({ id }) => call(admin, `DELETE /v1/people/${id}`)));
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  const roles = (await call(admin, "GET /v1/people")).body.data.map(({ role }: { role: string }) => role);
  expect(roles.filter((role: string) => role === "owner")).toEqual(["owner"]);
});

test("a removed person loses their keys, their programs' keys, and every way to get in again", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  await join(tenant, "owner");
  const email = emailOf("bob");
  const bob = await join(tenant, "owner", email);
  const program = (await call(bob.key, "POST /v1/keys", { name: "nightly", scopes: ["runs:read"] })).body;
  const waiting = await invited(tenant, "owner", email);
  expect((await call(admin, `DELETE /v1/people/${bob.id}`)).body).toEqual({
    object: "person",
    id: bob.id,
    deleted: true,
  });
  clock.now += 10_000;
  expect((await call(bob.key, "GET /v1/whoami")).status).toBe(401);
  expect((await call(admin, `GET /v1/keys/${bob.keyId}`)).body.revoked_at).not.toBeNull();
  expect((await accept(tenant, waiting.token)).status).toBe(404);
  expect((await call(program.key, "GET /v1/whoami")).status).toBe(401);
  expect((await call(admin, `DELETE /v1/people/${bob.id}`)).status).toBe(404);
});

test("only the person can rotate a person's key", async () => {
  const tenant = await openTenant();
  const { call, admin } = tenant;
  const owner = await join(tenant, "owner");
  const other = await join(tenant, "owner");
  const path = `POST /v1/keys/${owner.keyId}/rotate`;
  for (const key of [admin, other.key]) expect((await call(key, path, {})).status).toBe(403);
  const { status, body } = await call(owner.key, path, {});
  expect([status, body.person_id]).toEqual([201, owner.id]);
});

test("a repeat of an invitation creates none and does not show the token again", async () => {
  const { call, admin } = await openTenant();
  const [request, header] = [{ email: emailOf("ann"), role: "viewer" }, { "idempotency-key": "once" }];
  const both = await Promise.all([1, 2].map(() => call(admin, "POST /v1/invitations", request, header)));
  expect(both.map(({ body }) => body.token).filter((token) => token !== null).length).toBe(1);
  expect((await call(admin, "GET /v1/invitations")).body.data.length).toBe(1);
});

test("people and invitations belong to their organisation, and a key of one project does not see them", async () => {
  const [tenant, other] = [await openTenant(), await openTenant()];
  const { id } = await join(tenant, "viewer");
  const invitation = await invited(tenant, "viewer");
  for (const route of [`DELETE /v1/people/${id}`, `DELETE /v1/invitations/${invitation.id}`]) {
    expect((await other.call(other.admin, route)).status).toBe(404);
    expect((await tenant.call(tenant.token, route)).status).toBe(403);
  }
  const role = { role: "owner" };
  expect((await other.call(other.admin, `PATCH /v1/people/${id}`, role)).status).toBe(404);
  expect((await tenant.call(tenant.token, `PATCH /v1/people/${id}`, role)).status).toBe(403);
  for (const list of ["people", "invitations"]) {
    expect((await other.call(other.admin, `GET /v1/${list}`)).body.data).toEqual([]);
    expect((await tenant.call(tenant.token, `GET /v1/${list}`)).status).toBe(403);
  }
  const request = { email: emailOf("ann"), role: "owner" };
  expect((await tenant.call(tenant.token, "POST /v1/invitations", request)).status).toBe(403);
});

test("people are listed by the time they joined, page by page", async () => {
  const tenant = await openTenant();
  const { call, admin, clock } = tenant;
  const ids: string[] = [];
  for (let at = 0; at < 3; at += 1) {
    ids.push((await join(tenant, "viewer")).id);
    clock.now += 1000;
  }
  const first = (await call(admin, "GET /v1/people?limit=2&order=asc")).body;
  const rest = (await call(admin, `GET /v1/people?order=asc&after=${first.last_id}`)).body;
  expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids);
});

test("an organisation has a maximum of open invitations and of members", async () => {
  const tenant = await openTenant();
  const { call, admin, scope, clock } = tenant;
  const { token, email } = await invited(tenant, "viewer");
  const many = "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1)";
  const waiting = `insert into invitations (id, org_id, email, role, hash, invited_by, created_at, expires_at)
    ${many} select ?2 || i, ?2, 'x', 'viewer', ?2 || i, '', i, ?3 from n`;
  await env.DB.prepare(waiting)
    .bind(LIMITS.openInvitations - 1, scope.orgId, clock.now * 2)
    .run();
  expect((await call(admin, "POST /v1/invitations", { email: emailOf("b"), role: "viewer" })).status).toBe(409);
  const members = `insert into members (org_id, person_id, role, created_at) ${many} select ?2, ?2 || i, 'viewer', i from n`;
  await env.DB.prepare(members).bind(LIMITS.members, scope.orgId).run();
  expect((await accept(tenant, token)).body.error.message).toContain("the maximum of");
  expect(await env.DB.prepare("select id from people where email = ?").bind(email).first()).toBeNull();
  await env.DB.prepare("delete from members where org_id = ? and created_at = 1").bind(scope.orgId).run();
  expect((await accept(tenant, token)).status).toBe(201);
});

test.each([
  ["email", { email: "nobody", role: "viewer" }],
  ["role", { email: "ann@example.com", role: "admin" }],
])("an invitation names the wrong field: %s", async (param, request) => {
  const { call, admin } = await openTenant();
  const { status, body } = await call(admin, "POST /v1/invitations", request);
  expect([status, body.error.param]).toEqual([400, param]);
});

test("a key with an expiry or a limit of its own cannot invite", async () => {
  const { call, keyWith, clock } = await openTenant();
  for (const own of [{ expires_at: clock.now + 3_600_000 }, { requests_per_minute: 60 }]) {
    const key = await keyWith({ project_id: null, ...own });
    const refused = await call(key, "POST /v1/invitations", { email: emailOf("ann"), role: "owner" });
    expect(refused).toMatchObject({ status: 403, body: { error: { code: "forbidden" } } });
  }
});
