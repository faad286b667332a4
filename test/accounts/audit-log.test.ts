import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AuditList } from "../../src/accounts/wire.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { AuditObject } from "../../src/index.ts";
import { services } from "../../src/kernel/service/services.ts";
import { openTestApi, type TestApi } from "../kernel/http/test-api.ts";

const ENDPOINT = { name: "qwen", base_url: "https://gpu.example/v1" };

async function log(api: TestApi, query = "") {
  const reply = await api.ask(`/v1/audit-log${query}`);
  expect(reply.status).toBe(200);
  return AuditList.parse(await reply.json());
}

const auditOf = ({ scope }: TestApi) => env.AUDIT.getByName(`org/${scope.orgId}`);

test("a change is recorded with who made it, what was created and its outcome; a read is not recorded", async () => {
  const api = await openTestApi(services);
  expect((await log(api)).data).toEqual([]);
  const made = await api.post("/v1/endpoints", ENDPOINT, { "x-request-id": "first" });
  const { id } = await made.json<{ id: string }>();
  await api.ask("/v1/endpoints");
  expect((await api.post("/v1/endpoints", { name: 1 })).status).toBe(400);
  expect((await api.ask("/v1/secrets/none", { method: "DELETE" })).status).toBe(404);
  const { data } = await log(api);
  // The refused change is not recorded.
  expect(data.map(({ action, made, status }) => [action, made, status])).toEqual([["createEndpoint", id, 201]]);
  expect(data[0]).toMatchObject({
    id: "1",
    who: expect.stringMatching(/^key_/),
    project_id: api.scope.projectId,
    request_id: "first",
    at: Math.floor(api.clock.now / 1000),
  });
});

test("an interrupted change has no outcome, and a late outcome does not change a recorded one", async () => {
  const api = await openTestApi();
  const change = {
    at: 5000,
    who: "key_1",
    action: "cancelRun",
    project_id: api.scope.projectId,
    target: "run_1",
    request_id: "r",
  };
  const id = await auditOf(api).begin(change);
  expect((await log(api)).data).toMatchObject([{ id: String(id), status: null, target: "run_1" }]);
  await auditOf(api).end(Number(id), { status: 200, made: null });
  await auditOf(api).end(Number(id), { status: 500, made: "run_2" });
  expect((await log(api)).data).toMatchObject([{ status: 200, target: "run_1", made: null }]);
});

test("pages continue after an entry, and a filter leaves out other entries", async () => {
  const api = await openTestApi();
  for (const action of ["a", "b", "a", "b", "a"]) {
    const change = {
      at: 1,
      who: `key_${action}`,
      action,
      project_id: api.scope.projectId,
      target: null,
      request_id: "r",
    };
    await auditOf(api).begin(change);
  }
  const first = await log(api, "?limit=2");
  expect([first.data.map(({ id }) => id), first.has_more]).toEqual([["5", "4"], true]);
  expect((await log(api, `?limit=2&after=${first.last_id}`)).data.map(({ id }) => id)).toEqual(["3", "2"]);
  expect((await log(api, "?action=b")).data.map(({ id }) => id)).toEqual(["4", "2"]);
  expect((await log(api, "?who=key_a&limit=1")).data.map(({ id }) => id)).toEqual(["5"]);
});

test("another organisation reads none of the entries, and reading creates no log", async () => {
  const [api, other] = [await openTestApi(), await openTestApi()];
  const change = {
    at: 1,
    who: "key_1",
    action: "cancelRun",
    project_id: api.scope.projectId,
    target: "run_1",
    request_id: "r",
  };
  await auditOf(api).begin(change);
  expect((await log(other)).data).toEqual([]);
  const tables = await runInDurableObject(auditOf(other), (_, state) => {
    return state.storage.sql.exec("select name from sqlite_master where name = 'entries'").toArray();
  });
  expect(tables).toEqual([]);
});

test("beyond the limit the oldest entries are deleted and counted", async () => {
  const api = await openTestApi();
  const change = {
    at: 1,
    who: "key_1",
    action: "cancelRun",
    project_id: api.scope.projectId,
    target: null,
    request_id: "r",
  };
  await auditOf(api).begin(change);
  await auditOf(api).begin(change);
  await runInDurableObject(auditOf(api), (instance, state) => {
    expect(instance).toBeInstanceOf(AuditObject);
    state.storage.sql.exec("update sqlite_sequence set seq = ? where name = 'entries'", LIMITS.auditEntries);
  });
  await auditOf(api).begin(change);
  const { data, dropped } = await log(api);
  expect(data.map(({ id }) => id)).toEqual([String(LIMITS.auditEntries + 1), "2"]);
  expect(dropped).toBe(1);
});

test("a late change does not create a new log for a deleted organisation", async () => {
  const api = await openTestApi();
  const { projectId: project_id } = api.scope;
  const change = { at: 1, who: "key_1", action: "cancelRun", project_id, target: null, request_id: "r" };
  const id = await auditOf(api).begin(change);
  await auditOf(api).forget();
  expect(await auditOf(api).begin(change)).toBeNull();
  await auditOf(api).end(Number(id), { status: 200, made: null });
  expect((await log(api)).data).toEqual([]);
});
