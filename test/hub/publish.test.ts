/** Environments are published, named, and run by others. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, inject, test } from "vitest";
import { PublishedVersion } from "../../src/contract/published-environment.ts";
import { publish as publishNow } from "../../src/hub/publish.ts";
import { takeDown } from "../../src/hub/service.ts";
import { hub } from "../../src/hub/slice.ts";
import { Subrequests } from "../../src/kernel/kit/subrequests.ts";
import { cutOffAt } from "../kernel/cut-off.ts";
import { expectLaw, openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { type Packed, pack, send, zip } from "./packages.ts";

let alice: TestApi;
let bob: TestApi;
let owner = "";
beforeAll(async () => {
  [alice, bob] = [await openPlatform(), await openPlatform()];
  owner = `alice-${crypto.randomUUID().slice(0, 8)}`;
});

const CODE = () => inject("bundles")["guess-number"]?.text ?? "";
/** Other code that plays the same. */
const OTHER_CODE = () => `${CODE()}\n// another build\n`;

async function publish(api: TestApi, packed: Partial<Packed> & Pick<Packed, "name" | "version">, query = "") {
  const reply = await send(api, await pack({ code: CODE(), ...packed }), query);
  expect(reply.status, await reply.clone().text()).toBe(201);
  return PublishedVersion.parse(await reply.json());
}

async function errorOf(reply: Response) {
  const { error } = await reply.json<{ error: { code: string; message: string; param: string | null } }>();
  return { status: reply.status, ...error };
}

const at = (id: string) => `/v1/environments/${encodeURIComponent(id)}`;
const change = (api: TestApi, id: string, body: object) =>
  api.ask(at(id), { method: "PATCH", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
const put = (api: TestApi, path: string, body: object) =>
  api.ask(path, { method: "PUT", body: JSON.stringify(body), headers: { "content-type": "application/json" } });

const GAME = script([{ tool_calls: [{ name: "guess", arguments: { number: 50 } }] }, "I give up."]);
/** The status of a request for a run, which ends before it is returned. */
async function statusOfRun(api: TestApi, environment: string): Promise<number> {
  const body = { environment, num_examples: 1, seed: 7, model: GAME, endpoint: { base_url: env.MODEL_URL } };
  const reply = await api.post("/v1/runs", body);
  if (reply.status === 202) await api.ended((await reply.json<{ id: string }>()).id);
  return reply.status;
}

test("a public environment is run by another organisation, by name, range and tag, with the same rewards as in process", async () => {
  const name = `${owner}/guess`;
  const first = await publish(alice, { name, version: "1.0.0" }, "visibility=public&tag=stable");
  expect(first).toMatchObject({
    id: `${name}@1.0.0`,
    visibility: "public",
    tags: ["latest", "stable"],
    license: "MIT",
    yanked: null,
  });
  const second = await publish(alice, { name, version: "1.0.1", code: OTHER_CODE() });
  expect(second.tags).toEqual(["latest"]);
  const own = await bob.finish({ environment: "guess-number", num_examples: 2, seed: 7, model: GAME });
  for (const [named, version] of [
    [name, "1.0.1"],
    [`${name}@1.0.0`, "1.0.0"],
    [`${name}@^1`, "1.0.1"],
    [`${name}@stable`, "1.0.0"],
  ] as const) {
    const { environment, counts, report } = await bob.finish({
      environment: named,
      num_examples: 2,
      seed: 7,
      model: GAME,
    });
    expectLaw(counts);
    expect([environment.id, environment.version, counts.scored]).toEqual([name, version, 2]);
    expect(environment.digest).toBe(version === "1.0.0" ? first.digest : second.digest);
    expect(report.reward).toEqual(own.report.reward);
  }
});

test("a private environment is found by its own project only, and one of an organisation by all its projects", async () => {
  const other = await openPlatform(alice.scope.orgId);
  await publish(alice, { name: `${owner}/private`, version: "1.0.0" });
  await publish(alice, { name: `${owner}/shared`, version: "1.0.0" }, "visibility=organisation");
  const seen = async (api: TestApi) => {
    const page = await (await api.ask(`/v1/environments?owner=${owner}`)).json<{ data: { id: string }[] }>();
    const listed = page.data.map(({ id }) => id).filter((id) => /\/(private|shared)$/.test(id));
    for (const id of [`${owner}/private`, `${owner}/shared`]) {
      const status = listed.includes(id) ? 200 : 404;
      for (const path of ["", "/versions", "/package", "/readme", "/grant"]) {
        expect((await api.ask(`${at(id)}${path}`)).status, `${id}${path}`).toBe(status);
      }
      expect(await statusOfRun(api, id), id).toBe(status === 200 ? 202 : 404);
    }
    return listed.map((id) => id.split("/")[1]);
  };
  expect([await seen(alice), await seen(other), await seen(bob)]).toEqual([["private", "shared"], ["shared"], []]);
});

test("a version never changes: the same code again returns it, and other code is refused with the digest that won", async () => {
  const name = `${owner}/fixed`;
  const first = await publish(alice, { name, version: "1.0.0" });
  const again = await send(alice, await pack({ name, version: "1.0.0", code: CODE() }));
  expect([again.status, again.headers.get("idempotent-replayed"), await again.json()]).toEqual([201, "true", first]);
  const other = await errorOf(await send(alice, await pack({ name, version: "1.0.0", code: OTHER_CODE() })));
  expect(other).toMatchObject({ status: 409, code: "conflict", param: "version" });
  expect(other.message).toContain(first.digest);
});

test("of two publications of one version at once one wins, and the other is told its digest", async () => {
  const name = `${owner}/raced`;
  const packages = await Promise.all([CODE(), OTHER_CODE()].map((code) => pack({ name, version: "1.0.0", code })));
  const replies = await Promise.all(packages.map((bytes) => send(alice, bytes)));
  expect(replies.map(({ status }) => status).sort()).toEqual([201, 409]);
  const won = PublishedVersion.parse(await replies.find(({ status }) => status === 201)?.json());
  const lost = replies.find(({ status }) => status === 409);
  expect((await errorOf(lost ?? new Response("{}"))).message).toContain(won.digest);
  const kept = await alice.ask(`${at(`${name}@1.0.0`)}/package`);
  expect(kept.status).toBe(200);
});

test("names that differ only in dashes, dots, underscores and case are one name", async () => {
  const name = `${owner}/guess-word`;
  await publish(alice, { name, version: "1.0.0" }, "visibility=public");
  for (const spelling of ["guess_word", "Guess.Word", "guess__word"]) {
    const found = await bob.ask(at(`${owner.toUpperCase()}/${spelling}`));
    expect((await found.json<{ id: string }>()).id).toBe(name);
  }
  const shadow = await errorOf(
    await send(alice, await pack({ name: `${owner}/guess_word`, version: "2.0.0", code: CODE() })),
  );
  expect(shadow).toMatchObject({ status: 409, param: "name", message: expect.stringContaining(name) });
  const squatter = await errorOf(
    await send(bob, await pack({ name: `${owner.replace("-", "_")}/x`, version: "1.0.0", code: CODE() })),
  );
  expect(squatter).toMatchObject({
    status: 409,
    param: "name",
    message: expect.stringContaining("another organisation"),
  });
  const stranger = await errorOf(await change(bob, `${name}@1.0.0`, { deprecated: "no" }));
  expect(stranger).toMatchObject({ status: 403 });
});

test("ranges and tags skip a yanked version, an exact name does not, and the yank can be undone", async () => {
  const name = `${owner}/yanked`;
  await publish(alice, { name, version: "1.0.0" }, "visibility=public");
  await publish(alice, { name, version: "1.1.0", code: OTHER_CODE() });
  const resolved = async (wanted: string) =>
    (await (await bob.ask(at(`${name}${wanted}`))).json<{ version: string }>()).version;
  expect(await resolved("@^1")).toBe("1.1.0");
  const yanked = await change(alice, `${name}@1.1.0`, { yanked: { reason: "its reward is wrong" } });
  expect(await yanked.json()).toMatchObject({ yanked: { reason: "its reward is wrong" } });
  expect([await resolved("@^1"), await resolved(""), await resolved("@1.1.0")]).toEqual(["1.0.0", "1.0.0", "1.1.0"]);
  expect(await statusOfRun(bob, `${name}@1.1.0`)).toBe(202);
  await change(alice, `${name}@1.1.0`, { yanked: null });
  expect(await resolved("@^1")).toBe("1.1.0");
  expect((await errorOf(await bob.ask(at(`${name}@^2`)))).message).toContain("has no version ^2");
  expect((await errorOf(await change(alice, name, { yanked: null }))).message).toContain("name one version");
});

test("tags move, and latest cannot be deleted", async () => {
  const name = `${owner}/tagged`;
  await publish(alice, { name, version: "1.0.0" });
  await publish(alice, { name, version: "2.0.0-rc.1", code: OTHER_CODE() }, "tag=beta");
  const versionOf = async (tag: string) =>
    (await (await alice.ask(at(`${name}@${tag}`))).json<{ version: string }>()).version;
  expect([await versionOf("latest"), await versionOf("beta")]).toEqual(["1.0.0", "2.0.0-rc.1"]);
  await put(alice, `${at(name)}/tags/beta`, { version: "1.0.0" });
  expect(await versionOf("beta")).toBe("1.0.0");
  expect((await alice.ask(`${at(name)}/tags/latest`, { method: "DELETE" })).status).toBe(409);
  expect((await alice.ask(`${at(name)}/tags/beta`, { method: "DELETE" })).status).toBe(200);
  expect((await alice.ask(at(`${name}@beta`))).status).toBe(404);
  expect((await errorOf(await put(alice, `${at(name)}/tags/v1`, { version: "1.0.0" }))).message).toContain(
    "look like a version",
  );
});

test("of two versions that are published at once, latest is the newer one, and a backport leaves its description", async () => {
  const name = `${owner}/newest`;
  const packed = async (version: string, code: string) =>
    await pack({ name, version, code, manifest: { description: `that of ${version}` } });
  const [older, newer] = [await packed("1.0.1", CODE()), await packed("1.0.2", OTHER_CODE())];
  const publication = { visibility: null, allowFailing: false, tag: null };
  const options = { now: Date.now(), by: "key_alice", allowed: async () => true };
  let between: Promise<Response> | null = null;
  // The older one has read which versions exist when the newer one is published.
  const STORE = new Proxy(env.STORE, {
    get: (store, member) => async (key: string, value: string) => {
      between ??= send(alice, newer);
      await between;
      return await Reflect.apply(Reflect.get(store, member) as typeof store.put, store, [key, value]);
    },
  });
  expect(await publishNow({ ...env, STORE }, alice.scope, older, publication, options)).toMatchObject({ ok: true });
  expect((await send(alice, await packed("0.9.0", `${CODE()}\n// a backport\n`))).status).toBe(201);
  const shown = await (await alice.ask(at(name))).json();
  expect(shown).toMatchObject({ version: "1.0.2" });
  const listed = async (text: string) => {
    const query = `owner=${owner}&search=${encodeURIComponent(text)}`;
    const { data } = await (await alice.ask(`/v1/environments?${query}`)).json<{ data: { id: string }[] }>();
    return data.map(({ id }) => id).filter((id) => id === name);
  };
  expect([await listed("that of 1.0.2"), await listed("that of 0.9.0")]).toEqual([[name], []]);
});

test("a package that cannot be read is refused with the reason, and nothing of it is kept", async () => {
  const name = `${owner}/broken`;
  const json = JSON.stringify({ name: `@${name}`, version: "1.0.0" });
  const good = { "package/package.json": json, "package/rollcall-environment.js": CODE() };
  const reasons: [Uint8Array<ArrayBuffer>, RegExp][] = [
    [new Uint8Array([1, 2, 3]), /not a \.tgz file/],
    [await zip({ "package/package.json": json }), /has no rollcall-environment\.js/],
    [await zip({ ...good, "package/../../etc/passwd": "x" }), /is not below package\//],
    [await zip({ ...good, "package/package.json": "{" }), /package\.json is not valid JSON/],
    [
      await zip({ ...good, "package/package.json": JSON.stringify({ name: "no-owner", version: "1.0.0" }) }),
      /name: must be owner\/name/,
    ],
    [
      await zip({ ...good, "package/package.json": JSON.stringify({ name: `@${name}`, version: "v1" }) }),
      /version: must be a version/,
    ],
    [
      await zip({ ...good, "package/rollcall-environment.js": "throw new Error('not today')" }),
      /cannot be loaded: .*not today/,
    ],
    [await zip({ ...good, "package/rollcall-environment.js": "export default {}" }), /cannot be loaded/],
    [await zip({ ...good, "package/zeros": "0".repeat(13 * 1024 * 1024) }), /more than \d+ bytes unpacked/],
    [
      await zip({ ...good, ...Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`package/${n}`, ""])) }),
      /more than 1000 files/,
    ],
  ];
  for (const [bytes, why] of reasons) {
    expect(await errorOf(await send(alice, bytes)), String(why)).toMatchObject({
      status: 400,
      param: "package",
      message: expect.stringMatching(why),
    });
  }
  expect((await alice.ask(at(name))).status).toBe(404);
});

/** It needs a secret and a host, so its validation plays nothing. */
const EXAMPLES = { "package/examples.jsonl": '{"question":"nothing"}' };
const NEEDY = () => inject("bundles")["probing"]?.text ?? "";

test("an environment of another organisation gets a secret or a host only once the project has granted it", async () => {
  const name = `${owner}/needy`;
  await publish(alice, { name, version: "1.0.0", code: NEEDY(), files: EXAMPLES }, "visibility=public");
  const secret = { name: "KEY", value: "a value of some length" };
  for (const api of [alice, bob]) expect((await api.post("/v1/secrets", secret)).status).toBe(201);
  const body = {
    environment: name,
    dataset: [{ question: "nothing" }],
    model: GAME,
    endpoint: { base_url: env.MODEL_URL },
  };
  const refused = await errorOf(await bob.post("/v1/runs", body));
  expect(refused).toMatchObject({ status: 400, code: "unmet_need", param: "environment" });
  expect(refused.message).toContain(`env grant ${name} fetch secret:KEY`);
  await put(bob, `${at(name)}/grant`, { needs: ["secret:KEY"] });
  expect((await errorOf(await bob.post("/v1/runs", body))).message).toContain("has not granted it fetch:");
  const granted = await put(bob, `${at(name)}/grant`, { needs: ["secret:KEY", "fetch"] });
  expect(await granted.json()).toMatchObject({ id: name, own: false, needs: ["secret:KEY", "fetch"] });
  expect((await bob.post("/v1/runs", body)).status).toBe(202);
  // Its own organisation needs no grant.
  expect(await (await alice.ask(`${at(name)}/grant`)).json()).toMatchObject({ own: true, needs: [] });
  expect((await alice.post("/v1/runs", body)).status).toBe(202);
  const { id } = await (await bob.post("/v1/runs", body)).json<{ id: string }>();
  await bob.ended(id);
  await put(bob, `${at(name)}/grant`, { needs: [] });
  expect((await bob.post("/v1/runs", body)).status).toBe(400);
  // A retry plays its rollouts again, so it needs the grant again.
  expect(await errorOf(await bob.post(`/v1/runs/${id}/retry`, {}))).toMatchObject({ code: "unmet_need", param: "id" });
});

test("a version that an operator takes down is refused with the reason, and its record stays", async () => {
  const name = `${owner}/malware`;
  const { digest } = await publish(alice, { name, version: "1.0.0" }, "visibility=public");
  await publish(alice, { name, version: "0.9.0", code: OTHER_CODE() });
  const down = await takeDown(env, `${name}@1.0.0`, { reason: "it mines coins", now: Date.now() });
  expect(down).toMatchObject({ ok: true, value: { digest, taken_down: { reason: "it mines coins" } } });
  const [gone, exact] = [await bob.ask(`${at(`${name}@1.0.0`)}/package`), await bob.ask(at(`${name}@1.0.0`))];
  expect((await errorOf(exact)).message).toContain("it mines coins");
  expect([gone.status, (await bob.ask(`${at(name)}/package`)).status]).toEqual([404, 200]);
  const { data } = await (await bob.ask(`${at(name)}/versions`)).json<{ data: PublishedVersion[] }>();
  expect(data.map(({ version, taken_down }) => [version, taken_down?.reason ?? null])).toEqual([
    ["0.9.0", null],
    ["1.0.0", "it mines coins"],
  ]);
  expect(await statusOfRun(bob, name)).toBe(202);
});

test("an environment whose validation fails is published only if that is asked for, and says so", async () => {
  const name = `${owner}/faulty`;
  const code = inject("bundles")["faulty"]?.text ?? "";
  const manifest = { rollcall: { args: { kind: "raises" } } };
  const refused = await errorOf(await send(alice, await pack({ name, version: "1.0.0", code, manifest })));
  expect(refused).toMatchObject({ status: 400, param: "package" });
  expect(refused.message).toContain("its validation failed");
  expect((await alice.ask(at(name))).status).toBe(404);
  const shown = await publish(alice, { name, version: "1.0.0", code, manifest }, "allow_failing=true");
  expect(shown.validation).toMatchObject({ ok: false });
});

test("what is public stays if its organisation is deleted, and the rest goes", async () => {
  const carol = await openPlatform();
  const carols = `carol-${crypto.randomUUID().slice(0, 8)}`;
  for (const visibility of ["public", "organisation", "private"]) {
    await publish(carol, { name: `${carols}/${visibility}`, version: "1.0.0" }, `visibility=${visibility}`);
  }
  await hub.hooks.closeOrganization?.(env, carol.scope.orgId, new Subrequests());
  const left = ["public", "organisation", "private"].map((visibility) => carol.ask(at(`${carols}/${visibility}`)));
  expect((await Promise.all(left)).map(({ status }) => status)).toEqual([200, 404, 404]);
  expect(await statusOfRun(bob, `${carols}/public`)).toBe(202);
  const keys = async (prefix: string) => (await env.STORE.list({ prefix })).objects.length;
  // The deletion of an organisation deletes all files below its folder.
  expect(await keys(`org/${carol.scope.orgId}/hub/`)).toBe(3);
  expect(await keys(`org/${carol.scope.orgId}/${carol.scope.projectId}/hub/`)).toBe(3);
});

test("a publication that is cut off at any call is completed by a repeat, and nothing incomplete is found", async () => {
  const dora = await openPlatform();
  const doras = `dora-${crypto.randomUUID().slice(0, 8)}`;
  const options = { now: Date.now(), by: "key_dora", allowed: async () => true };
  const publication = { visibility: null, allowFailing: false, tag: null };
  let calls = 0;
  for (let left = true; left; calls += 1) {
    const name = `${doras}/cut-${calls}`;
    const packed = { name, version: "1.0.0", code: NEEDY(), files: EXAMPLES };
    const bytes = await pack(packed);
    const cut = cutOffAt(calls, calls % 2 === 0 ? "before" : "after");
    const work = publishNow(cut.env, dora.scope, bytes, publication, options).catch(() => undefined);
    left = (await Promise.race([cut.reached.then(() => "cut"), work.then(() => "whole")])) === "cut";
    cut.bury();
    await work;
    const found = await dora.ask(at(name));
    if (found.status === 200) expect((await dora.ask(`${at(name)}/package`)).status, `call ${calls}`).toBe(200);
    else expect(found.status, `call ${calls}`).toBe(404);
    await publish(dora, packed);
    expect((await dora.ask(`${at(name)}/package`)).status, `call ${calls}`).toBe(200);
  }
  expect(calls).toBeGreaterThan(10);
});

test("a webhook that lists the events gets one event for a published version and one for a yank", async () => {
  const name = `${owner}/told`;
  const webhook = await alice.post("/v1/webhook-endpoints", {
    url: `${env.MODEL_URL}/hook`,
    events: ["environment.*"],
  });
  expect(webhook.status, await webhook.clone().text()).toBe(201);
  const { id } = await webhook.json<{ id: string }>();
  await publish(alice, { name, version: "1.0.0" });
  await publish(alice, { name, version: "1.0.0" });
  for (const reason of ["wrong", "still wrong"]) await change(alice, `${name}@1.0.0`, { yanked: { reason } });
  const told = async () => {
    const { data } = await (await alice.ask(`/v1/webhook-endpoints/${id}/deliveries`)).json<{
      data: { type: string }[];
    }>();
    return data.map(({ type }) => type).sort();
  };
  await expect.poll(told).toEqual(["environment.published", "environment.yanked"]);
});

test("the audit log has who published, yanked, tagged and granted", async () => {
  const eve = await openPlatform();
  const name = `eve-${crypto.randomUUID().slice(0, 8)}/logged`;
  await publish(eve, { name, version: "1.0.0" });
  await change(eve, `${name}@1.0.0`, { yanked: { reason: "wrong" } });
  await put(eve, `${at(name)}/tags/beta`, { version: "1.0.0" });
  await put(eve, `${at(name)}/grant`, { needs: ["sql"] });
  const { data } = await (await eve.ask("/v1/audit-log")).json<{ data: { action: string; status: number }[] }>();
  expect(data.map(({ action, status }) => [action, status])).toEqual([
    ["setEnvironmentGrant", 200],
    ["moveEnvironmentTag", 200],
    ["updateEnvironmentVersion", 200],
    ["publishEnvironment", 201],
  ]);
});
