import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { openAuthentication } from "../../src/accounts/authentication.ts";
import { DEFAULT_LIMITS } from "../../src/contract/identity.ts";
import { createApp } from "../../src/kernel/http/app.ts";
import { services } from "../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../src/slice-services.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { checked } from "../kernel/http/validate-responses.ts";
import { openTenant } from "./tenant.ts";

const TOKEN = "the deployment's own token, of 32 characters";

/** Sends a bootstrap request to a deployment with this token. */
async function bootstrapWith(
  own: string | undefined,
  given: string,
  body: object = { name: "Example Labs" },
  headers: Readonly<Record<string, string>> = {},
) {
  const app = createApp(
    {
      services,
      slices: SLICE_SERVICES,
      authentication: openAuthentication,
      now: () => 1_792_000_000_000,
      outlive: (work) => work,
      report: () => undefined,
    },
    OPERATIONS,
  );
  const deployment = own === undefined ? env : { ...env, ROLLCALL_BOOTSTRAP_TOKEN: own };
  const ask = checked(async (path, init) => await app.request(`http://platform.test${path}`, init, deployment));
  const reply = await ask("/v1/bootstrap", {
    method: "POST",
    headers: { authorization: `Bearer ${given.replaceAll(" ", "-")}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever the test says of it
  return { status: reply.status, body: await reply.json<any>() };
}

const OWN = TOKEN.replaceAll(" ", "-");

test("a deployment without a token has no bootstrap route, and a wrong token creates nothing", async () => {
  await env.DB.exec("delete from organizations; delete from deletions");
  expect((await bootstrapWith(undefined, TOKEN, {})).status).toBe(404);
  expect((await bootstrapWith("", "")).status).toBe(404);
  for (const wrong of ["", "x", `${TOKEN}x`]) expect((await bootstrapWith(OWN, wrong)).status).toBe(401);
  expect(await env.DB.prepare("select count(*) as n from organizations").first("n")).toBe(0);
});

test("of two concurrent bootstraps one creates the first organisation, whose key has all scopes", async () => {
  await env.DB.exec("delete from organizations; delete from deletions");
  const both = await Promise.all([1, 2].map(() => bootstrapWith(OWN, TOKEN)));
  expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  const made = both.find(({ status }) => status === 201)?.body;
  expect(made).toMatchObject({
    name: "Example Labs",
    limits: DEFAULT_LIMITS,
    project: { name: "default" },
    key: { scopes: ["admin", "operator"], project_id: null, created_by: "bootstrap" },
  });
  for (const table of ["organizations", "projects", "api_keys"]) {
    const of = table === "organizations" ? "1 = 1" : `org_id = '${made.id}'`;
    expect(await env.DB.prepare(`select count(*) as n from ${table} where ${of}`).first("n")).toBe(1);
  }
  const { call } = await openTenant();
  expect((await call(made.key.key, "GET /v1/organizations")).status).toBe(200);
  const header = { "rollcall-project": "default" };
  expect((await call(made.key.key, "GET /v1/runs", undefined, header)).status).toBe(200);
  expect((await bootstrapWith(OWN, TOKEN)).status).toBe(409);
  const { data } = (await call(made.key.key, "GET /v1/audit-log")).body;
  expect(data).toMatchObject([{ who: "bootstrap", action: "createFirstOrganization", made: made.key.id, status: 201 }]);
});

test("a bootstrap whose reply was lost returns the same key under its Idempotency-Key, and no other request gets it", async () => {
  await env.DB.exec("delete from organizations; delete from deletions");
  const named = { name: "Example Labs" };
  const first = await bootstrapWith(OWN, TOKEN, named, { "idempotency-key": "one-of-a-kind" });
  expect(first.status).toBe(201);
  const again = await bootstrapWith(OWN, TOKEN, named, { "idempotency-key": "one-of-a-kind" });
  expect(again).toEqual(first);
  const { call } = await openTenant();
  expect((await call(again.body.key.key, "GET /v1/whoami")).body.organization.id).toBe(first.body.id);
  for (const headers of [{}, { "idempotency-key": "another" }]) {
    expect((await bootstrapWith(OWN, TOKEN, named, headers)).status).toBe(409);
  }
  const other = "x".repeat(40);
  expect((await bootstrapWith(other, other, named, { "idempotency-key": "one-of-a-kind" })).status).toBe(409);
});

test("a token that is too short is not accepted", async () => {
  const reply = await bootstrapWith("short", "short");
  expect([reply.status, reply.body.error.message]).toEqual([404, expect.stringContaining("fewer than 32 characters")]);
});

test("a deployment whose organisations are all being deleted cannot be bootstrapped again", async () => {
  await openTenant();
  await env.DB.prepare("update organizations set deleted_at = 1").run();
  expect((await bootstrapWith(OWN, TOKEN)).status).toBe(409);
});

test("a deployment whose only organisation was deleted cannot be bootstrapped again", async () => {
  await env.DB.exec("delete from organizations; delete from deletions");
  const receipt = `insert into deletions (id, org_id, kind, target_id, state, counts, requested_by, created_at)
    values ('del_gone', 'org_gone', 'organization', 'org_gone', 'done', '{}', 'key_1', 1)`;
  await env.DB.prepare(receipt).run();
  expect((await bootstrapWith(OWN, TOKEN)).status).toBe(409);
  await env.DB.prepare("delete from deletions where id = 'del_gone'").run();
  expect((await bootstrapWith(OWN, TOKEN)).status).toBe(201);
});

test("an operator creates an organisation with a project and a key, which is shown once", async () => {
  const { call, keyWith } = await openTenant();
  const operator = await keyWith({ project_id: null, scopes: ["operator"] });
  const request = { name: "Customer", project: "evals", limits: { runs_in_flight: 3 } };
  const header = { "idempotency-key": "customer" };
  const { status, body } = await call(operator, "POST /v1/organizations", request, header);
  expect(status).toBe(201);
  expect(body).toMatchObject({ name: "Customer", limits: { ...DEFAULT_LIMITS, runs_in_flight: 3 } });
  const { key } = body.key;
  const whoami = (await call(key, "GET /v1/whoami")).body;
  expect(whoami).toEqual({
    object: "caller",
    who: body.key.id,
    organization: { id: body.id, name: "Customer" },
    project: null,
    scopes: ["admin"],
    expires_at: null,
    session: null,
  });
  expect((await call(key, "GET /v1/projects/evals")).body).toEqual(body.project);
  const again = await call(operator, "POST /v1/organizations", request, header);
  expect(again.body).toEqual({ ...body, key: { ...body.key, key: null } });
});

test("only an operator creates and lists organisations and sets limits", async () => {
  const { call, admin, scope } = await openTenant();
  expect((await call(admin, "POST /v1/organizations", { name: "x" })).status).toBe(403);
  expect((await call(admin, "GET /v1/organizations")).status).toBe(403);
  const limits = { runs_in_flight: null };
  expect((await call(admin, `PATCH /v1/organizations/${scope.orgId}`, { limits })).status).toBe(403);
});

test("an operator lists organisations and sets their limits one by one, and sees none of their data", async () => {
  const [tenant, { call, keyWith, scope: own }] = [await openTenant(), await openTenant()];
  const operator = await keyWith({ project_id: null, scopes: ["operator"] });
  const { orgId } = tenant.scope;
  const path = `PATCH /v1/organizations/${orgId}`;
  await Promise.all([
    call(operator, path, { limits: { runs_in_flight: 3, storage_bytes: null } }),
    call(operator, path, { limits: { concurrent_rollouts: 7 } }),
  ]);
  const limits = { ...DEFAULT_LIMITS, runs_in_flight: 3, storage_bytes: null, concurrent_rollouts: 7 };
  expect((await tenant.call(tenant.admin, "GET /v1/organization")).body.limits).toEqual(limits);
  const ids: string[] = [];
  for (let page = "", more = true; more; ) {
    const { body } = await call(operator, `GET /v1/organizations?limit=2${page}`);
    ids.push(...body.data.map(({ id }: { id: string }) => id));
    page = `&after=${body.last_id}`;
    more = body.has_more;
  }
  expect(ids).toEqual(expect.arrayContaining([orgId, own.orgId]));
  expect(new Set(ids).size).toBe(ids.length);
  for (const route of ["keys", "projects"]) expect((await call(operator, `GET /v1/${route}`)).status).toBe(403);
  expect((await call(operator, "PATCH /v1/organizations/org_none", { limits: {} })).status).toBe(404);
  expect((await call(operator, path, { limits: { runs: 1 } })).body.error.param).toBe("limits.runs");
});

test("an organisation changes its own name and allowed hosts", async () => {
  const { call, admin, token } = await openTenant();
  const before = (await call(admin, "GET /v1/organization")).body;
  const change = { name: "Renamed", allowed_hosts: ["gpu.example", "*.models.example"] };
  expect((await call(admin, "PATCH /v1/organization", change)).body).toEqual({ ...before, ...change });
  expect((await call(admin, "PATCH /v1/organization", {})).body).toEqual({ ...before, ...change });
  expect((await call(admin, "PATCH /v1/organization", { allowed_hosts: null })).body.allowed_hosts).toBeNull();
  expect((await call(token, "PATCH /v1/organization", { name: "x" })).status).toBe(403);
  const wrong = await call(admin, "PATCH /v1/organization", { allowed_hosts: ["ok.example", "https://gpu.example"] });
  expect([wrong.status, wrong.body.error.param]).toEqual([400, "allowed_hosts[1]"]);
});

test("whoami shows a key's project and expiry", async () => {
  const { call, keyWith, scope, clock } = await openTenant();
  const ends = clock.now + 90_000;
  const key = await keyWith({ scopes: ["runs:read"], expires_at: ends });
  expect((await call(key, "GET /v1/whoami")).body).toMatchObject({
    organization: { id: scope.orgId },
    project: { id: scope.projectId },
    scopes: ["runs:read"],
    expires_at: ends / 1000,
  });
});
