/** The API while the disk of a local platform is full. */
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { mintToken } from "../../../src/core/ids.ts";
import { minting } from "../../../src/kernel/kit/secrets.ts";
import { storageTakes } from "../../../src/kernel/kit/storage-faults.ts";
import { openTestApi } from "./test-api.ts";

/** A noted full disk is shared by the whole process. */
afterEach(async () => {
  expect(await storageTakes({ ...env, LIVE_OBJECT_CEILING: 9 })).toBe(true);
});

/** A store of files that fails as on a full disk, and can recover. */
function localStore() {
  let full = true;
  const write = async () => {
    if (full) throw new Error("put: internal error; reference = abc");
  };
  return {
    bindings: { ...env, LIVE_OBJECT_CEILING: 9, STORE: { put: write, delete: write } },
    makeRoom: () => {
      full = false;
    },
  };
}

function refusing(message: string): () => never {
  return () => {
    // A failed query names itself, and its cause has the reason.
    throw new Error("Failed query: select", { cause: new Error(message) });
  };
}

test("a failure of a full disk is 507 with its own code, and /healthz is 503 until there is space", async () => {
  const { bindings, makeRoom } = localStore();
  const { app, token } = await openTestApi({ readRun: refusing("disk is full: SQLITE_FULL") });
  const ask = (path: string) => app.request(path, { headers: { authorization: `Bearer ${token}` } }, bindings);
  expect((await ask("/healthz")).status).toBe(200);
  const refused = await ask("/v1/runs/run_1");
  expect(refused.status).toBe(507);
  expect(await refused.json()).toMatchObject({ error: { code: "storage_full" } });
  const sick = await ask("/healthz");
  expect([sick.status, await sick.json()]).toEqual([503, { status: "storage_full" }]);
  makeRoom();
  expect((await ask("/healthz")).status).toBe(200);
});

test("an object that does not open counts as damaged only if there is space to write", async () => {
  const { bindings, makeRoom } = localStore();
  const { app, token } = await openTestApi({ readRun: refusing("internal error; reference = abc") });
  const code = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const reply = await app.request("/v1/runs/run_1", { headers }, bindings);
    return (await reply.json<{ error: { code: string } }>()).error.code;
  };
  expect(await code()).toBe("storage_full");
  makeRoom();
  expect(await code()).toBe("run_unreadable");
});

test("on a full disk, if the database does not answer, a key that was accepted before is accepted", async () => {
  const { bindings } = localStore();
  const { app, token, clock } = await openTestApi({ listEnvironments: async () => ({ rows: [], limit: 1 }) });
  const DB = new Proxy(env.DB, { get: refusing("disk is full: SQLITE_FULL") });
  const ask = (key: string) =>
    app.request("/v1/environments", { headers: { authorization: `Bearer ${key}` } }, { ...bindings, DB });
  expect((await ask(token)).status).toBe(507);
  const headers = { authorization: `Bearer ${token}` };
  expect((await app.request("/v1/environments", { headers }, bindings)).status).toBe(200);
  clock.now += 2000;
  expect((await ask(token)).status).toBe(200);
  expect((await ask(mintToken("rk", minting(env, 0)))).status).toBe(507);
});

test("on a full disk, a key that was accepted once and refused since is not accepted", async () => {
  const { bindings } = localStore();
  const { app, token, clock, scope } = await openTestApi({ listEnvironments: async () => ({ rows: [], limit: 1 }) });
  const DB = new Proxy(env.DB, { get: refusing("disk is full: SQLITE_FULL") });
  const headers = { authorization: `Bearer ${token}` };
  const statusOf = async (database: D1Database) => {
    const reply = await app.request("/v1/environments", { headers }, { ...bindings, DB: database });
    return reply.status;
  };
  expect(await statusOf(env.DB)).toBe(200);
  await env.DB.prepare("delete from api_keys where org_id = ?").bind(scope.orgId).run();
  clock.now += 2000;
  expect(await statusOf(env.DB)).toBe(401);
  expect(await statusOf(DB)).toBe(401);
});
