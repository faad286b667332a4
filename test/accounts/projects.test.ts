import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { DEFAULT_RETENTION } from "../../src/contract/identity.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { openTenant } from "./tenant.ts";

test("a project is created, read by id and by name, and has the default retention", async () => {
  const { call, admin, clock } = await openTenant();
  const { status, body, headers } = await call(admin, "POST /v1/projects", {
    name: "math",
    retention: { runs_days: 30 },
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    object: "project",
    id: expect.stringMatching(/^pj_/),
    name: "math",
    retention: { ...DEFAULT_RETENTION, runs_days: 30 },
    created_at: clock.now / 1000,
  });
  expect(headers.get("location")).toBe(`/v1/projects/${body.id}`);
  for (const known of ["math", body.id]) expect((await call(admin, `GET /v1/projects/${known}`)).body).toEqual(body);
  const listed = await call(admin, "GET /v1/projects?order=asc");
  expect(listed.body.data.map(({ id }: { id: string }) => id)).toContain(body.id);
});

test("the data of a new project is separate from the others", async () => {
  const { call, admin, token } = await openTenant();
  await call(admin, "POST /v1/projects", { name: "math" });
  const header = { "rollcall-project": "math" };
  const secret = { name: "SEARCH_KEY", value: "s3arch-value" };
  expect((await call(admin, "POST /v1/secrets", secret, header)).status).toBe(201);
  expect((await call(admin, "GET /v1/secrets/SEARCH_KEY", undefined, header)).status).toBe(200);
  expect((await call(token, "GET /v1/secrets/SEARCH_KEY")).status).toBe(404);
});

test("a name is free or a conflict, in a patch too, and unique only within its organisation", async () => {
  const [one, other] = [await openTenant(), await openTenant()];
  const taken = { status: 409, body: { error: { code: "conflict", param: "name" } } };
  await one.call(one.admin, "POST /v1/projects", { name: "math" });
  expect(await one.call(one.admin, "POST /v1/projects", { name: "math" })).toMatchObject(taken);
  const { body } = await one.call(one.admin, "POST /v1/projects", { name: "code" });
  expect(await one.call(one.admin, `PATCH /v1/projects/${body.id}`, { name: "math" })).toMatchObject(taken);
  expect((await other.call(other.admin, "POST /v1/projects", { name: "math" })).status).toBe(201);
  expect((await other.call(other.admin, `GET /v1/projects/${body.id}`)).status).toBe(404);
  expect((await other.call(other.admin, `PATCH /v1/projects/${body.id}`, { name: "x" })).status).toBe(404);
});

test("a patch changes only the given fields, and of two concurrent patches none is lost", async () => {
  const { call, admin } = await openTenant();
  const { body } = await call(admin, "POST /v1/projects", { name: "math", retention: { verdicts_days: null } });
  const path = `PATCH /v1/projects/math`;
  const changes = [{ runs_days: 30 }, { datasets_days: 7 }, { verdicts_days: 5 }, { runs_days: 30 }];
  await Promise.all(changes.map((retention) => call(admin, path, { retention })));
  const retention = { ...DEFAULT_RETENTION, runs_days: 30, datasets_days: 7, verdicts_days: 5 };
  expect((await call(admin, path, {})).body).toEqual({ ...body, retention });
  const renamed = await call(admin, path, { name: "algebra", retention: { runs_days: null } });
  expect(renamed.body).toEqual({ ...body, name: "algebra", retention: { ...retention, runs_days: null } });
});

test("a repeat creates nothing", async () => {
  const { call, admin } = await openTenant();
  const header = { "idempotency-key": "once" };
  const both = await Promise.all([1, 2].map(() => call(admin, "POST /v1/projects", { name: "math" }, header)));
  expect(both.map(({ status }) => status)).toEqual([201, 201]);
  expect(both[0]?.body).toEqual(both[1]?.body);
});

test("a key of one project sees only that project and creates none", async () => {
  const { call, admin, token, scope } = await openTenant();
  const { body } = await call(admin, "POST /v1/projects", { name: "math" });
  expect((await call(token, "GET /v1/projects")).body.data.map(({ id }: { id: string }) => id)).toEqual([
    scope.projectId,
  ]);
  expect((await call(token, `GET /v1/projects/${body.id}`)).status).toBe(404);
  expect((await call(token, "PATCH /v1/projects/math", { name: "x" })).status).toBe(404);
  expect((await call(token, "POST /v1/projects", { name: "more" })).status).toBe(403);
});

test("an organisation has a maximum of projects", async () => {
  const { call, admin, scope } = await openTenant();
  const rows = `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1)
    select ?2 || i, ?2, 'p' || i, '{}', i from n`;
  await env.DB.prepare(`insert into projects (id, org_id, name, retention, created_at) ${rows}`)
    .bind(LIMITS.projects - 2, scope.orgId)
    .run();
  expect((await call(admin, "POST /v1/projects", { name: "last" })).status).toBe(201);
  expect((await call(admin, "POST /v1/projects", { name: "more" })).status).toBe(409);
});

test.each(["pj_math", "", "a b", "-a", "x".repeat(64)])("%j is not a valid project name", async (name) => {
  const { call, admin } = await openTenant();
  const { status, body } = await call(admin, "POST /v1/projects", { name });
  expect([status, body.error.param]).toEqual([400, "name"]);
});
