/** Isolates keep settings and keys for minutes, and still see each change within five seconds. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, expect, test, vi } from "vitest";
import { openAuthentication } from "../../src/accounts/authentication.ts";
import { CHANGE_MS, changesSettings, NO_SETTINGS } from "../../src/accounts/settings-version.ts";
import { EnvError } from "../../src/contract/errors.ts";
import { openReplica } from "../../src/fleets/access.ts";
import { FleetView } from "../../src/fleets/wire.ts";
import { AuditObject } from "../../src/index.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { findEndpoint, updateEndpoint } from "../../src/kernel/db/endpoints.ts";
import { openEndpoint } from "../../src/kernel/endpoint/call.ts";
import { createApp } from "../../src/kernel/http/app.ts";
import { accounts } from "../../src/kernel/kit/account-hooks.ts";
import { SETTINGS_AGE_MS, SETTINGS_KEPT_MS } from "../../src/kernel/kit/caches.ts";
import { openSecrets } from "../../src/kernel/kit/secret-values.ts";
import { seal, sealContext } from "../../src/kernel/kit/secrets.ts";
import { SettingsCache } from "../../src/kernel/kit/settings-cache.ts";
import { services } from "../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../src/slice-services.ts";
import { OPERATIONS } from "../../src/slices.ts";
import { openTestApi, type TestApi } from "../kernel/http/test-api.ts";
import { admit } from "./admit.ts";

const SECOND_MS = 1000;
const change = {
  ...{ at: 0, who: "key_1", action: "updateEndpoint", project_id: null },
  ...{ target: "ep_1", request_id: "r" },
};

let api: TestApi;
/** Of a key of the whole organisation. */
let authorization: string;
beforeEach(async () => {
  api = await openTestApi(services);
  authorization = `Bearer ${await admit(api.scope, { project_id: null })}`;
});

const auditOf = ({ scope }: TestApi) => env.AUDIT.getByName(`org/${scope.orgId}`);

function inAudit<T>(use: (audit: AuditObject, state: DurableObjectState) => T | Promise<T>): Promise<T> {
  return runInDurableObject(auditOf(api), (audit, state) => {
    if (!(audit instanceof AuditObject)) throw new Error("not the audit object");
    return use(audit, state);
  });
}

const kill = () => inAudit((_, state) => state.abort("killed")).catch(() => null);

function patch(path: string, body: object): Promise<Response> {
  const headers = { authorization, "content-type": "application/json", "rollcall-project": api.scope.projectId };
  return api.ask(path, { method: "PATCH", headers, body: JSON.stringify(body) });
}

async function makeKey(): Promise<{ id: string; key: string }> {
  const made = await api.post("/v1/keys", { name: "follower", scopes: ["runs:read"] }, { authorization });
  expect(made.status).toBe(201);
  return await made.json<{ id: string; key: string }>();
}

async function revoke(id: string): Promise<void> {
  expect((await api.ask(`/v1/keys/${id}`, { method: "DELETE", headers: { authorization } })).status).toBe(200);
}

/** A setting of the organisation as an isolate keeps it, and how often it was read. */
function kept(first: string) {
  const cache = new SettingsCache<string>();
  const stored = { value: first, reads: 0, away: false };
  const read = async () => {
    if (stored.away) throw new Error("D1 is away");
    stored.reads += 1;
    return stored.value;
  };
  const { orgId } = api.scope;
  const get = (now: number) => cache.get({ env, orgId, name: orgId, now }, read);
  return { cache, stored, get };
}

/** How often statements on a table were made by way of `counted`. */
function countingD1(table: string) {
  const prepare = vi.fn((text: string) => env.DB.prepare(text));
  const counted = { ...env, DB: Object.assign(Object.create(databaseOf(env)), { prepare }) };
  const reads = () => prepare.mock.calls.filter(([text]) => text.includes(`from "${table}"`)).length;
  return { counted, reads };
}

/** The API in another isolate, as far as authentication goes; `DB` counts. */
function anotherIsolate() {
  const { counted, reads } = countingD1("api_keys");
  const app = createApp(
    {
      ...{ services, slices: SLICE_SERVICES, authentication: openAuthentication },
      now: () => api.clock.now,
      outlive: (work) => work,
      report: (error) => expect(error).toBeNull(),
    },
    OPERATIONS,
  );
  const status = async (token = api.token) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.request("http://platform.test/v1/whoami", { headers }, counted)).status;
  };
  return { status, lookUps: reads };
}

test("a setting that does not change is read once in five minutes, and one that changes within five seconds", async () => {
  const { stored, get } = kept("old");
  const at = 1_000_000;
  for (let now = at; now < at + SETTINGS_AGE_MS; now += SECOND_MS) expect(await get(now)).toBe("old");
  expect(stored.reads).toBe(1);
  await get(at + SETTINGS_AGE_MS + SETTINGS_KEPT_MS);
  expect(stored.reads).toBe(2);
  stored.value = "new";
  expect((await patch("/v1/organization", { name: "renamed" })).status).toBe(200);
  expect(await get(at + SETTINGS_AGE_MS + 2 * SETTINGS_KEPT_MS)).toBe("new");
  expect(stored.reads).toBe(3);
});

test("callers that come while a value is read wait for that read, also after a kill of the reader", async () => {
  const { cache, stored, get } = kept("old");
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const asked = { env, orgId: api.scope.orgId, name: api.scope.orgId, now: 0 };
  const first = cache.get(asked, async () => {
    await gate;
    return "slow";
  });
  const others = Promise.all([get(0), get(1)]);
  await scheduler.wait(0);
  open();
  expect([await first, ...(await others)]).toEqual(["slow", "slow", "slow"]);
  expect(stored.reads).toBe(0);
  // A reader that never ends.
  void cache.get({ ...asked, now: SETTINGS_KEPT_MS }, () => Promise.withResolvers<never>().promise);
  stored.value = "new";
  await inAudit((audit) => audit.settingsChanged());
  expect(await get(SETTINGS_KEPT_MS)).toBe("new");
});

test("a value that is forgotten while it is read is read again", async () => {
  const { cache, stored, get } = kept("new");
  const { promise, resolve } = Promise.withResolvers<string>();
  const { orgId } = api.scope;
  const first = cache.get({ env, orgId, name: orgId, now: 0 }, () => promise);
  await scheduler.wait(0);
  cache.forget(orgId);
  expect(await get(1)).toBe("new");
  resolve("old");
  expect(await first).toBe("old");
  expect([await get(2), stored.reads]).toEqual(["new", 1]);
});

test("a value that was read before a change, and kept after it, is read again", async () => {
  const { stored, get } = kept("old");
  await get(0);
  const entry = Number(await auditOf(api).begin(change));
  // It is read while the change is in progress, and before it is stored.
  expect(await get(SETTINGS_KEPT_MS)).toBe("old");
  stored.value = "new";
  await auditOf(api).end(entry, { status: 200, made: null });
  expect(await get(2 * SETTINGS_KEPT_MS)).toBe("new");
  expect(await get(3 * SETTINGS_KEPT_MS)).toBe("new");
  expect(stored.reads).toBe(3);
  await get(4 * SETTINGS_KEPT_MS);
  expect(stored.reads).toBe(3);
});

test("after a kill between the beginning of a change and its end, its value is used within five seconds", async () => {
  const { stored, get } = kept("old");
  const begun = Date.now();
  await inAudit((audit) => audit.begin({ ...change, at: begun }));
  await kill();
  let now = begun;
  expect(await get(now)).toBe("old");
  const next = async () => {
    now += SETTINGS_KEPT_MS;
    return await get(now);
  };
  for (let late = 0; late < 5; late += 1) expect(await next()).toBe("old");
  // The statement reaches D1 late, and nothing says that the change has ended.
  stored.value = "new";
  expect(await next()).toBe("new");
  expect(stored.reads).toBe(7);
  await inAudit((audit) => {
    audit.now = () => begun + 2 * CHANGE_MS;
  });
  await next();
  for (let later = 0; later < 5; later += 1) await next();
  expect(stored.reads).toBe(8);
});

test("a change that ends after a kill of the audit object gives another version", async () => {
  const { stored, get } = kept("old");
  await get(0);
  const entry = Number(await auditOf(api).begin(change));
  stored.value = "new";
  await kill();
  await auditOf(api).end(entry, { status: 200, made: null });
  await kill();
  expect(await get(SETTINGS_KEPT_MS)).toBe("new");
});

test("if the audit object does not answer, settings are read again every five seconds", async () => {
  const { stored, get } = kept("old");
  const away = vi.spyOn(accounts(), "settingsVersion").mockRejectedValue(new Error("away"));
  const logged = vi.spyOn(console, "error").mockReturnValue(undefined);
  try {
    await get(0);
    stored.value = "new";
    expect([await get(SETTINGS_KEPT_MS - 2 * SECOND_MS), await get(SETTINGS_KEPT_MS)]).toEqual(["old", "new"]);
    expect(logged).toHaveBeenCalled();
  } finally {
    away.mockRestore();
    logged.mockRestore();
  }
});

test("if the audit object does not reply within three seconds, settings are read without a version", async () => {
  const { stored, get } = kept("old");
  await get(0);
  stored.value = "new";
  const away = vi.spyOn(accounts(), "settingsVersion").mockReturnValue(Promise.withResolvers<never>().promise);
  const logged = vi.spyOn(console, "error").mockReturnValue(undefined);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const read = get(SETTINGS_KEPT_MS);
    await vi.advanceTimersByTimeAsync(3000);
    expect([await read, vi.getTimerCount()]).toEqual(["new", 0]);
    expect(logged).toHaveBeenCalledTimes(1);
  } finally {
    vi.useRealTimers();
    away.mockRestore();
    logged.mockRestore();
  }
});

test("while the audit object does not reply, only the first request waits for it, and a revoked key is refused", async () => {
  const isolate = anotherIsolate();
  const { id, key } = await makeKey();
  expect(await isolate.status(key)).toBe(200);
  const away = vi.spyOn(accounts(), "settingsVersion").mockReturnValue(Promise.withResolvers<never>().promise);
  const logged = vi.spyOn(console, "error").mockReturnValue(undefined);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    api.clock.now += 2.5 * SECOND_MS;
    const first = isolate.status(key);
    await vi.waitFor(() => expect(away).toHaveBeenCalledTimes(1));
    await vi.advanceTimersByTimeAsync(3000);
    expect(await first).toBe(200);
    api.clock.now += 3 * SECOND_MS;
    expect([await isolate.status(key), away.mock.calls.length]).toEqual([200, 1]);
  } finally {
    vi.useRealTimers();
  }
  try {
    await revoke(id);
    api.clock.now += 2.5 * SECOND_MS;
    expect(await isolate.status(key)).toBe(401);
  } finally {
    away.mockRestore();
    logged.mockRestore();
  }
});

test("if D1 is away, the last value is used for five minutes after it was current, and a deleted one at once not", async () => {
  const { cache, stored, get } = kept("old");
  const minute = 60 * SECOND_MS;
  for (let now = 0; now <= 4 * minute; now += SECOND_MS) await get(now);
  stored.away = true;
  for (let now = 4 * minute; now < 9 * minute; now += SECOND_MS) expect(await get(now)).toBe("old");
  await inAudit((audit) => audit.settingsChanged());
  expect(await get(9 * minute + SETTINGS_KEPT_MS)).toBe("old");
  await expect(get(15 * minute)).rejects.toThrow("D1 is away");
  stored.away = false;
  await get(16 * minute);
  const gone = () => Promise.reject(new EnvError("it was deleted"));
  const asked = { env, orgId: api.scope.orgId, name: api.scope.orgId, now: 22 * minute };
  await expect(cache.get(asked, gone)).rejects.toThrow("it was deleted");
  expect(cache.size).toBe(0);
});

test("the values that are kept are limited in number and in characters", async () => {
  const { orgId } = api.scope;
  const many = new SettingsCache<number>();
  for (let one = 0; one < 2100; one += 1)
    await many.get({ env, orgId, name: `${orgId}/${one}`, now: 0 }, async () => one);
  expect(many.size).toBe(2000);
  const large = new SettingsCache<string>();
  const text = "x".repeat(1024 ** 2);
  for (let one = 0; one < 6; one += 1)
    await large.get({ env, orgId, name: `${orgId}/${one}`, now: 0 }, async () => text);
  expect(large.size).toBe(3);
  let reads = 0;
  const again = (name: number) =>
    large.get({ env, orgId, name: `${orgId}/${name}`, now: 1 }, async () => {
      reads += 1;
      return text;
    });
  await again(5);
  expect(reads).toBe(0);
  await again(0);
  expect(reads).toBe(1);
});

test("a key is looked up once in five minutes, and is refused in every isolate within five seconds of its revocation", async () => {
  const isolate = anotherIsolate();
  const { id, key } = await makeKey();
  const until = api.clock.now + SETTINGS_AGE_MS;
  for (; api.clock.now < until; api.clock.now += 2.5 * SECOND_MS) expect(await isolate.status(key)).toBe(200);
  // The organisation of a key is known after the first look-up.
  expect(isolate.lookUps()).toBe(2);
  await revoke(id);
  api.clock.now += 2.5 * SECOND_MS;
  expect(await isolate.status(key)).toBe(401);
});

test("a key whose revocation cannot be entered in the audit log is refused within five seconds", async () => {
  const isolate = anotherIsolate();
  const { id, key } = await makeKey();
  for (let count = 0; count < 3; count += 1) {
    expect(await isolate.status(key)).toBe(200);
    api.clock.now += 2.5 * SECOND_MS;
  }
  const away = vi.spyOn(accounts(), "beginChange").mockRejectedValueOnce(new Error("away"));
  const logged = vi.spyOn(console, "error").mockReturnValue(undefined);
  try {
    await revoke(id);
    expect([away.mock.calls.length, logged.mock.calls.length]).toEqual([1, 1]);
  } finally {
    away.mockRestore();
    logged.mockRestore();
  }
  expect(await isolate.status(key)).toBe(401);
});

test("a change whose entry the audit log could not write counts as in progress", async () => {
  await auditOf(api).begin({ ...change, action: "createRun" });
  const before = await auditOf(api).settingsVersion();
  await inAudit((audit, { storage }) => {
    storage.sql.exec("drop table entries; create table entries (id integer primary key)");
    expect(() => audit.begin(change)).toThrow("no column");
    expect(audit.settingsVersion()).toBeNull();
    audit.now = () => Date.now() + CHANGE_MS + SECOND_MS;
    expect(audit.settingsVersion()).not.toBe(before);
  });
});

test("a later instance has a version if every change has ended, and none while another is in progress", async () => {
  const begin = async () => Number(await auditOf(api).begin({ ...change, at: Date.now() }));
  const end = (entry: number) => auditOf(api).end(entry, { status: 200, made: null });
  const version = () => auditOf(api).settingsVersion();
  await end(await begin());
  await kill();
  expect(await version()).not.toBeNull();
  const [first, second] = [await begin(), await begin()];
  await end(first);
  await kill();
  expect(await version()).toBeNull();
  await end(second);
  expect(await version()).not.toBeNull();
});

test("a change that failed counts as in progress, also in a later instance: its statement may reach D1 late", async () => {
  const { stored, get } = kept("old");
  const begun = Date.now();
  const entry = Number(await auditOf(api).begin({ ...change, at: begun }));
  await auditOf(api).end(entry, { status: 503, made: null });
  expect(await get(begun)).toBe("old");
  stored.value = "new";
  expect(await get(begun + SETTINGS_KEPT_MS)).toBe("new");
  await kill();
  expect(await get(begun + 2 * SETTINGS_KEPT_MS)).toBe("new");
  stored.value = "newer";
  expect(await get(begun + 3 * SETTINGS_KEPT_MS)).toBe("newer");
});

test("a new instance reads a limited number of entries, and has no version if there may be changes beyond them", async () => {
  await inAudit((audit, { storage }) => {
    audit.begin({ ...change, at: Date.now() });
    storage.sql.exec(
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000)
        insert into entries (at, who, action, request_id, status) select ?, 'key_1', 'createRun', 'r', 202 from n`,
      Date.now(),
    );
  });
  await kill();
  await inAudit((audit) => {
    expect(audit.settingsVersion()).toBeNull();
    audit.now = () => Date.now() + CHANGE_MS + SECOND_MS;
    expect(audit.settingsVersion()).not.toBeNull();
  });
});

test("a change whose body takes half an hour to arrive counts as in progress, also in a later instance", async () => {
  const begun = Date.now();
  await inAudit((audit) => audit.begin({ ...change, at: begun }));
  await kill();
  await inAudit((audit) => {
    audit.now = () => begun + 31 * 60 * SECOND_MS;
    expect(audit.settingsVersion()).toBeNull();
  });
});

test("a change that takes longer than any should gives another version when it ends", async () => {
  await inAudit((audit) => {
    const entry = Number(audit.begin(change));
    expect(audit.settingsVersion()).toBeNull();
    audit.now = () => Date.now() + CHANGE_MS + SECOND_MS;
    const before = audit.settingsVersion();
    expect(before).not.toBeNull();
    audit.end(entry, { status: 200, made: null });
    expect(audit.settingsVersion()).not.toBe(before);
  });
});

test("changes that never end are forgotten when there are many, and one among them still counts", async () => {
  await inAudit((audit) => {
    const begun = Date.now();
    for (let count = 0; count < 150; count += 1) audit.begin(change);
    audit.now = () => begun + CHANGE_MS + SECOND_MS;
    expect(audit.settingsVersion()).not.toBeNull();
    audit.begin(change);
    expect(audit.settingsVersion()).toBeNull();
    audit.now = () => begun + 3 * CHANGE_MS;
    expect(audit.settingsVersion()).not.toBeNull();
  });
});

test("a new value of a secret is used within five seconds", async () => {
  const needs = ["secret:SEARCH_KEY"];
  const read = (now: number) => openSecrets(env, api.scope, needs, now);
  await api.post("/v1/secrets", { name: "SEARCH_KEY", value: "first" });
  for (let now = 0; now < 60 * SECOND_MS; now += SECOND_MS) expect(await read(now)).toEqual({ SEARCH_KEY: "first" });
  expect((await patch("/v1/secrets/SEARCH_KEY", { value: "second" })).status).toBe(200);
  expect(await read(60 * SECOND_MS + SETTINGS_KEPT_MS)).toEqual({ SEARCH_KEY: "second" });
});

test("the changed key of an endpoint is used within five seconds, and the endpoint is read twice for it", async () => {
  const { counted, reads } = countingD1("endpoints");
  const { scope } = api;
  const made = await api.post("/v1/endpoints", { name: "policy", base_url: "https://gpu.example/v1", probe: false });
  const { id } = await made.json<{ id: string }>();
  const keyAt = async (now: number) => (await openEndpoint(counted, scope, id, now)).api_key;
  // The change that created it has ended for this isolate.
  const at = Date.now() + SETTINGS_KEPT_MS;
  for (let now = at; now < at + 60 * SECOND_MS; now += SECOND_MS) expect(await keyAt(now)).toBeNull();
  expect(reads()).toBe(1);
  // As another isolate does it: this one is not notified.
  const row = await findEndpoint(databaseOf(env), scope, id);
  if (row === null) throw new Error("it is there");
  const sealed_key = await seal(env, "new key", sealContext(scope, id));
  const entry = Number(await auditOf(api).begin(change));
  await updateEndpoint(databaseOf(env), scope, row, { sealed_key });
  await auditOf(api).end(entry, { status: 200, made: null });
  expect(await keyAt(at + 60 * SECOND_MS + SETTINGS_KEPT_MS)).toBe("new key");
  expect(reads()).toBe(2);
});

test("the changed key of a replica is used within five seconds, and a removed replica is not called any more", async () => {
  const { counted, reads } = countingD1("replicas");
  const replica = { name: "gpu-0", base_url: "http://127.0.0.1:9/v1", api_key: "sk-first-0123456789" };
  const made = await api.post("/v1/fleets", { name: "trained", replicas: [replica] });
  const fleet = FleetView.parse(await made.json());
  const id = fleet.replicas[0]?.id ?? "";
  const open = (now: number) => openReplica(counted, api.scope, fleet.id, id, now);
  // Its fleet opens it too, by the clock of the machine.
  const at = Date.now() + SETTINGS_KEPT_MS;
  for (let now = at; now < at + 60 * SECOND_MS; now += SECOND_MS)
    expect((await open(now)).api_key).toBe("sk-first-0123456789");
  expect(reads()).toBe(1);
  const path = "/v1/fleets/trained/replicas/gpu-0";
  expect((await patch(path, { api_key: "sk-second-0123456789" })).status).toBe(200);
  expect((await open(at + 60 * SECOND_MS + SETTINGS_KEPT_MS)).api_key).toBe("sk-second-0123456789");
  expect((await api.ask(path, { method: "DELETE" })).status).toBe(200);
  await expect(open(at + 60 * SECOND_MS + 2 * SETTINGS_KEPT_MS)).rejects.toThrow(`replica ${id} does not exist`);
});

test("a run changes no setting, and a version is written nowhere", async () => {
  const version = await auditOf(api).settingsVersion();
  const entry = Number(await auditOf(api).begin({ ...change, action: "createRun" }));
  expect(await auditOf(api).settingsVersion()).toBe(version);
  await auditOf(api).end(entry, { status: 202, made: "run_1" });
  expect(await auditOf(api).settingsVersion()).toBe(version);
  const other = env.AUDIT.getByName("org/org_never_created");
  await other.settingsVersion();
  expect(await runInDurableObject(other, async (_, { storage }) => (await storage.list()).size)).toBe(0);
});

test("changes that another organisation's operator makes, and what a call finds out, give another version, too", async () => {
  const operator = await openTestApi(services);
  const token = await admit(operator.scope, { project_id: null, scopes: ["operator"] });
  const version = async () => await auditOf(api).settingsVersion();
  const before = await version();
  const reply = await operator.ask(`/v1/organizations/${api.scope.orgId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ limits: { requests_per_minute: 9 } }),
  });
  expect(reply.status).toBe(200);
  const limited = await version();
  expect(limited).not.toBe(before);
  const made = await api.post("/v1/endpoints", { name: "policy", base_url: "https://gpu.example/v1", probe: false });
  const { id } = await made.json<{ id: string }>();
  const [created, endpoint] = [await version(), await openEndpoint(env, api.scope, id, Date.now())];
  await endpoint.remember?.("logprobs");
  expect(await version()).not.toBe(created);
  expect((await openEndpoint(env, api.scope, id, Date.now())).refuses).toEqual(["logprobs"]);
});

test("an organisation that was deleted has no version", async () => {
  await auditOf(api).forget();
  expect(await auditOf(api).settingsVersion()).toBeNull();
});

test("only changes that are named as such change no setting, and each of them is an operation", () => {
  const ids = OPERATIONS.map(({ id }) => id);
  expect([...NO_SETTINGS].filter((action) => !ids.includes(action))).toEqual([]);
  const changing = [
    "revokeApiKey",
    "updateEndpoint",
    "updateReplica",
    "deleteSecret",
    "deletePerson",
    "of a later version",
  ];
  expect(changing.filter((action) => !changesSettings(action))).toEqual([]);
});
