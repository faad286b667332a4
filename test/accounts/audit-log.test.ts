import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { AuditList } from "../../src/accounts/wire.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { AuditObject } from "../../src/index.ts";
import { services } from "../../src/kernel/service/services.ts";
import { type Door, openDoor } from "../kernel/http/door.ts";

const ENDPOINT = { name: "qwen", base_url: "https://gpu.example/v1" };

async function log(door: Door, query = "") {
  const reply = await door.ask(`/v1/audit-log${query}`);
  expect(reply.status).toBe(200);
  return AuditList.parse(await reply.json());
}

const auditOf = ({ scope }: Door) => env.AUDIT.getByName(`org/${scope.orgId}`);

test("a change is recorded with who made it, what was created and its outcome; a read is not recorded", async () => {
  const door = await openDoor(services);
  expect((await log(door)).data).toEqual([]);
  const made = await door.post("/v1/endpoints", ENDPOINT, { "x-request-id": "first" });
  const { id } = await made.json<{ id: string }>();
  await door.ask("/v1/endpoints");
  expect((await door.post("/v1/endpoints", { name: 1 })).status).toBe(400);
  expect((await door.ask("/v1/secrets/none", { method: "DELETE" })).status).toBe(404);
  const { data } = await log(door);
  // The refused change is not recorded.
  expect(data.map(({ action, made, status }) => [action, made, status])).toEqual([["createEndpoint", id, 201]]);
  expect(data[0]).toMatchObject({
    id: "1",
    who: expect.stringMatching(/^key_/),
    project_id: door.scope.projectId,
    request_id: "first",
    at: Math.floor(door.clock.now / 1000),
  });
});

test("an interrupted change has no outcome, and a late outcome does not change a recorded one", async () => {
  const door = await openDoor();
  const change = {
    at: 5000,
    who: "key_1",
    action: "cancelRun",
    project_id: door.scope.projectId,
    target: "run_1",
    request_id: "r",
  };
  const id = await auditOf(door).begin(change);
  expect((await log(door)).data).toMatchObject([{ id: String(id), status: null, target: "run_1" }]);
  await auditOf(door).end(Number(id), { status: 200, made: null });
  await auditOf(door).end(Number(id), { status: 500, made: "run_2" });
  expect((await log(door)).data).toMatchObject([{ status: 200, target: "run_1", made: null }]);
});

test("pages continue after an entry, and a filter leaves out other entries", async () => {
  const door = await openDoor();
  for (const action of ["a", "b", "a", "b", "a"]) {
    const change = {
      at: 1,
      who: `key_${action}`,
      action,
      project_id: door.scope.projectId,
      target: null,
      request_id: "r",
    };
    await auditOf(door).begin(change);
  }
  const first = await log(door, "?limit=2");
  expect([first.data.map(({ id }) => id), first.has_more]).toEqual([["5", "4"], true]);
  expect((await log(door, `?limit=2&after=${first.last_id}`)).data.map(({ id }) => id)).toEqual(["3", "2"]);
  expect((await log(door, "?action=b")).data.map(({ id }) => id)).toEqual(["4", "2"]);
  expect((await log(door, "?who=key_a&limit=1")).data.map(({ id }) => id)).toEqual(["5"]);
});

test("another organisation reads none of the entries, and reading creates no log", async () => {
  const [door, other] = [await openDoor(), await openDoor()];
  const change = {
    at: 1,
    who: "key_1",
    action: "cancelRun",
    project_id: door.scope.projectId,
    target: "run_1",
    request_id: "r",
  };
  await auditOf(door).begin(change);
  expect((await log(other)).data).toEqual([]);
  const tables = await runInDurableObject(auditOf(other), (_, state) => {
    return state.storage.sql.exec("select name from sqlite_master where name = 'entries'").toArray();
  });
  expect(tables).toEqual([]);
});

test("beyond the limit the oldest entries are deleted and counted", async () => {
  const door = await openDoor();
  const change = {
    at: 1,
    who: "key_1",
    action: "cancelRun",
    project_id: door.scope.projectId,
    target: null,
    request_id: "r",
  };
  await auditOf(door).begin(change);
  await auditOf(door).begin(change);
  await runInDurableObject(auditOf(door), (instance, state) => {
    expect(instance).toBeInstanceOf(AuditObject);
    state.storage.sql.exec("update sqlite_sequence set seq = ? where name = 'entries'", LIMITS.auditEntries);
  });
  await auditOf(door).begin(change);
  const { data, dropped } = await log(door);
  expect(data.map(({ id }) => id)).toEqual([String(LIMITS.auditEntries + 1), "2"]);
  expect(dropped).toBe(1);
});

test("a late change does not create a new log for a deleted organisation", async () => {
  const door = await openDoor();
  const { projectId: project_id } = door.scope;
  const change = { at: 1, who: "key_1", action: "cancelRun", project_id, target: null, request_id: "r" };
  const id = await auditOf(door).begin(change);
  await auditOf(door).forget();
  expect(await auditOf(door).begin(change)).toBeNull();
  await auditOf(door).end(Number(id), { status: 200, made: null });
  expect((await log(door)).data).toEqual([]);
});
