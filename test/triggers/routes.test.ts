import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import onWeights from "../../examples/triggers/eval-new-weights.json" with { type: "json" };
import onPush from "../../examples/triggers/eval-on-push.json" with { type: "json" };
import push from "../../examples/triggers/github-push.json" with { type: "json" };
import update from "../../examples/triggers/huggingface-update.json" with { type: "json" };
import nightly from "../../examples/triggers/train-nightly.json" with { type: "json" };
import { LIMITS } from "../../src/contract/limits.ts";
import type { RunView } from "../../src/contract/run.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { getTrigger, insertTrigger } from "../../src/triggers/queries.ts";
import { findHook } from "../../src/triggers/receive-delivery.ts";
import type { CreatedTrigger, TriggerDelivery, TriggerReceipt } from "../../src/triggers/wire.ts";
import { openTenant } from "../accounts/tenant.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { githubSignature, standardHeaders } from "./signing.ts";

const GAME = {
  ...{ environment: "guess-number", environment_args: { max: 1000, max_turns: 1 }, num_examples: 1 },
  ...{ model: script([{ tool_calls: [{ name: "guess", arguments: { number: 900 } }] }]), endpoint: "policy" },
};

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever the test says of it
  readonly body: any;
}

/** A platform with an endpoint called policy. */
async function opened(): Promise<TestApi> {
  const api = await openPlatform();
  await api.post("/v1/endpoints", { name: "policy", base_url: env.MODEL_URL, probe: false });
  return api;
}

async function asked(reply: Promise<Response>): Promise<Answer> {
  const met = await reply;
  return { status: met.status, body: await met.json() };
}

async function make(api: TestApi, request: object): Promise<CreatedTrigger> {
  const { status, body } = await asked(api.post("/v1/triggers", request));
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

/** Posts like a sender: without a key, from a separate address. */
function post(api: TestApi, { url }: { readonly url: string }, body: string, headers: Record<string, string>) {
  const own = { authorization: "", "content-type": "application/json", "cf-connecting-ip": crypto.randomUUID() };
  return asked(api.ask(new URL(url).pathname, { method: "POST", headers: { ...own, ...headers }, body }));
}

function pushed(api: TestApi, trigger: CreatedTrigger, changes: object = {}, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ ...push.body, ...changes });
  const signature = githubSignature(onPush.verify.secret, body);
  return post(api, trigger, body, { ...push.headers, "x-hub-signature-256": signature, ...headers });
}

async function logOf(api: TestApi, { id }: { readonly id: string }): Promise<TriggerDelivery[]> {
  return (await asked(api.ask(`/v1/triggers/${id}/deliveries`))).body.data;
}

async function codes(api: TestApi, trigger: CreatedTrigger) {
  return (await logOf(api, trigger)).map(({ state, error }) => [state, error?.code ?? null]);
}

test("a push on GitHub starts the eval of the commit, once, and nothing for another branch", async () => {
  const api = await opened();
  const trigger = await make(api, { ...onPush, run: { ...onPush.run, ...GAME } });
  const first = await pushed(api, trigger);
  expect(first).toMatchObject({ status: 202, body: { duplicate: false, state: "started", reason: null } });
  const run: RunView = (await asked(api.ask(`/v1/runs/${first.body.run_id}`))).body;
  expect(run.metadata).toEqual({ sha: push.body.after, repo: "acme/policy", by: "ada" });
  const again: TriggerReceipt = { run_id: run.id, duplicate: true, state: "started", reason: null };
  expect(await pushed(api, trigger)).toMatchObject({ status: 202, body: again });
  // A body that GitHub signed, with an id that it did not send.
  expect(await pushed(api, trigger, {}, { "x-github-delivery": "another" })).toMatchObject({ body: again });
  const elsewhere = await pushed(api, trigger, { ref: "refs/heads/dev" }, { "x-github-delivery": "d2" });
  expect(elsewhere).toMatchObject({
    status: 202,
    body: { run_id: null, state: "ignored", reason: expect.stringContaining("$.ref") },
  });
  const ping = await pushed(
    api,
    trigger,
    { zen: "Keep it logically awesome." },
    { "x-github-delivery": "d3", "x-github-event": "ping" },
  );
  expect(ping).toMatchObject({ status: 202, body: { run_id: null, state: "answered" } });
  expect((await logOf(api, trigger)).map(({ state, event, delivery_id }) => [state, event, delivery_id])).toEqual([
    ["answered", "ping", "d3"],
    ["ignored", "push", "d2"],
    ["started", "push", push.headers["x-github-delivery"]],
  ]);
  const { data } = (await asked(api.ask("/v1/audit-log?action=receiveDelivery"))).body;
  expect(data).toMatchObject([{ who: trigger.id, target: trigger.id, made: run.id, status: 202 }]);
  expect((await asked(api.ask("/v1/runs"))).body.data).toHaveLength(1);
});

test("a delivery may contain numbers of any length that its trigger does not use", async () => {
  const api = await opened();
  const trigger = await make(api, { ...onPush, run: { ...onPush.run, ...GAME } });
  const body = JSON.stringify(push.body).replace(
    /^\{/,
    '{"id":12345678901234567890123,"sizes":[9007199254740993,1e400],',
  );
  const headers = { ...push.headers, "x-hub-signature-256": githubSignature(onPush.verify.secret, body) };
  const test = async (sent: object) => (await asked(api.post(`/v1/triggers/${trigger.id}/test`, sent))).body;
  expect(await test({ body })).toMatchObject({ would: "begin", errors: [] });
  expect(await test({ body, headers })).toMatchObject({ verified: true, would: "begin", errors: [] });
  expect(await post(api, trigger, body, headers)).toMatchObject({ status: 202, body: { state: "started" } });
});

test("new weights on Hugging Face start an eval of them, and two deliveries of one commit start one eval", async () => {
  const api = await opened();
  const { model: _, ...map } = onWeights.map;
  const trigger = await make(api, { ...onWeights, run: { ...onWeights.run, ...GAME }, map });
  const told = await post(api, trigger, JSON.stringify(update.body), update.headers);
  expect(told).toMatchObject({ status: 202, body: { duplicate: false, state: "started" } });
  const run: RunView = (await asked(api.ask(`/v1/runs/${told.body.run_id}`))).body;
  expect(run.metadata).toEqual({ weights: "acme/policy-4b", revision: update.body.repo.headSha });
  const twice = { ...update.body, webhook: { id: "another", version: 3 } };
  expect(await post(api, trigger, JSON.stringify(twice), update.headers)).toMatchObject({
    body: { run_id: run.id, duplicate: true },
  });
  expect(await post(api, trigger, JSON.stringify(update.body), { "x-webhook-secret": "another" })).toMatchObject({
    status: 401,
    body: { error: { code: "invalid_signature" } },
  });
});

test("a Standard Webhooks sender starts the nightly training, with a secret that was shown once", async () => {
  const api = await opened();
  const model = script(["no"], undefined, { held: true, tokens: true });
  const trigger = await make(api, { ...nightly, run: { ...nightly.run, model } });
  expect(trigger.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const body = JSON.stringify({ type: "training.due", data: { night: "2026-11-30", seed: 20_261_130 } });
  const sent = (id: string, at = Date.now(), text = body) =>
    post(api, trigger, text, standardHeaders(trigger.secret ?? "", id, text, at));
  const told = await sent("nightly_1");
  expect(told).toMatchObject({ status: 202, body: { state: "started" } });
  const run: RunView = (await asked(api.ask(`/v1/runs/${told.body.run_id}`))).body;
  expect(run).toMatchObject({ kind: "training", seed: 20_261_130, metadata: { night: "2026-11-30" } });
  expect(await sent("nightly_2")).toMatchObject({ status: 202, body: { state: "waiting", run_id: null } });
  await api.ask(`/v1/runs/${run.id}/cancel`, { method: "POST" });
  expect(await sent("nightly_3", Date.now() - 301_000)).toMatchObject({
    status: 401,
    body: { error: { code: "stale_timestamp" } },
  });
  expect(await sent("nightly_4", Date.now(), "{")).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_request" } },
  });
  expect((await asked(api.ask(`/v1/triggers/${trigger.name}`))).body).not.toHaveProperty("secret");
  await api.ask(`/v1/triggers/${trigger.id}`, { method: "DELETE" });
});

test("a refusal gives the reason, to its sender and in the log", async () => {
  const api = await opened();
  const trigger = await make(api, { ...onPush, run: { ...onPush.run, ...GAME }, when: {} });
  const id = (name: string) => ({ "x-github-delivery": name });
  expect(await pushed(api, trigger, {}, { "x-hub-signature-256": "sha256=00" })).toMatchObject({ status: 401 });
  const long = JSON.stringify({ text: "x".repeat(1024 * 1024) });
  expect(await post(api, trigger, long, push.headers)).toMatchObject({
    status: 413,
    body: { error: { code: "too_large" } },
  });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  expect(await post(api, trigger, "payload=%7B%7D", form)).toMatchObject({ status: 415 });
  expect(await pushed(api, trigger, { after: undefined }, id("d1"))).toMatchObject({
    status: 400,
    body: {
      error: { code: "invalid_request", param: "map.metadata.sha", message: expect.stringContaining("$.after") },
    },
  });
  expect(await pushed(api, trigger, { after: { not: "text" } }, id("d2"))).toMatchObject({
    status: 400,
    body: { error: { param: "run.metadata.sha" } },
  });
  // Signed, but not a delivery: it has no id.
  expect(await pushed(api, trigger, {}, id(""))).toMatchObject({
    status: 400,
    body: { error: { param: "X-GitHub-Delivery" } },
  });
  const patch = (body: object) =>
    api.ask(`/v1/triggers/${trigger.id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await patch({ disabled: true });
  expect(await pushed(api, trigger, {}, id("d3"))).toMatchObject({
    status: 409,
    body: { error: { code: "conflict" } },
  });
  await patch({ disabled: false });
  await api.ask("/v1/endpoints/policy", { method: "DELETE" });
  expect(await pushed(api, trigger, {}, id("d3"))).toMatchObject({
    status: 404,
    body: { error: { param: "endpoint" } },
  });
  expect((await codes(api, trigger)).toReversed()).toEqual([
    ["refused", "invalid_signature"],
    ["refused", "too_large"],
    ["refused", "invalid_request"],
    ["refused", "invalid_request"],
    ["refused", "invalid_request"],
    ["refused", "invalid_request"],
    ["refused", "conflict"],
    ["refused", "not_found"],
  ]);
  const one = (await asked(api.ask(`/v1/triggers/${trigger.id}/deliveries?limit=1`))).body;
  const next = (await asked(api.ask(`/v1/triggers/${trigger.id}/deliveries?limit=1&after=${one.last_id}`))).body;
  expect([one.has_more, one.data[0].error.code, next.data[0].error.code]).toEqual([true, "not_found", "conflict"]);
});

const UNKNOWN = { url: "http://x/hooks/tr_01ks2h9q4e7mxw3f0tbn8vc5zqw7h5t2be" };

test("an unknown id is 404 without a key, and an address that tries many has to wait", async () => {
  const api = await opened();
  const from = { "cf-connecting-ip": crypto.randomUUID() };
  expect(await post(api, UNKNOWN, "{}", from)).toMatchObject({ status: 404 });
  const replies = await Promise.all(Array.from({ length: 120 }, () => post(api, UNKNOWN, "{}", from)));
  expect(replies.some(({ status }) => status === 429)).toBe(true);
});

test("an address with many wrong signatures costs no look-up, and signed deliveries from it work", async () => {
  const api = await opened();
  const trigger = await make(api, { ...onPush, run: { ...onPush.run, ...GAME } });
  const from = { "cf-connecting-ip": crypto.randomUUID() };
  await Promise.all(Array.from({ length: 220 }, () => post(api, UNKNOWN, "{}", from)));
  expect(await post(api, trigger, "{}", from)).toMatchObject({
    ...{
      status: 429,
      body: { error: { message: expect.stringMatching(/^too many deliveries whose sender is unknown/) } },
    },
  });
  expect(await pushed(api, trigger, {}, from)).toMatchObject({ status: 202, body: { state: "started" } });
  const asked: string[] = [];
  const DB = new Proxy(env.DB, {
    get: (database, name) => {
      asked.push(String(name));
      const member: unknown = Reflect.get(database, name);
      return typeof member === "function" ? member.bind(database) : member;
    },
  });
  const found = (mayBeOld: boolean, now: number) => findHook({ ...env, DB }, trigger.id, { now, mayBeOld });
  const at = Date.now();
  const before = await found(false, at);
  const looked = asked.length;
  expect([await found(true, at + 4999), asked.length]).toEqual([before, looked]);
  await found(true, at + 5000);
  expect(asked.length).toBeGreaterThan(looked);
});

test("a template is checked when it is created or changed, and the error names the field", async () => {
  const api = await opened();
  const base = { name: "t", verify: { scheme: "standard" }, run: GAME };
  const paramOf = async (changes: object) => {
    const { status, body } = await asked(api.post("/v1/triggers", { ...base, ...changes }));
    return [status, body.error?.param];
  };
  expect(await paramOf({ run: { ...GAME, environment: "nothing" } })).toEqual([404, "run.environment"]);
  expect(await paramOf({ run: { ...GAME, endpoint: "elsewhere" } })).toEqual([404, "run.endpoint"]);
  expect(await paramOf({ run: { ...GAME, seed: -1 } })).toEqual([400, "run.seed"]);
  expect(await paramOf({ run: { ...GAME, endpoint: { base_url: env.MODEL_URL, api_key: "sk-1" } } })).toEqual([
    400,
    "run.endpoint.api_key",
  ]);
  expect(await paramOf({ map: { "metdata.sha": "$.a" } })).toEqual([400, "map.metdata.sha"]);
  expect(await paramOf({ map: { "metadata.sha": "$.a[*]" } })).toEqual([400, "map.metadata.sha"]);
  expect(await paramOf({ verify: { scheme: "github" } })).toEqual([400, "verify.secret"]);
  expect(await paramOf({ verify: { scheme: "github", secret: "short" } })).toEqual([400, "verify.secret"]);
  expect(await paramOf({ map: { environment: "$.e" } })).toEqual([201, undefined]);
  expect(await paramOf({})).toEqual([409, "name"]);
});

test("a secret that cannot be used for signing is refused when it is set, and any other starts runs", async () => {
  const api = await opened();
  const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  const request = (secret: string, scheme = "standard") => ({ name: "t", verify: { scheme, secret }, run: GAME });
  const refused = await asked(api.post("/v1/triggers", request(`v2,whsec_${key}`)));
  expect(refused).toMatchObject({ status: 400, body: { error: { code: "invalid_request", param: "verify.secret" } } });
  const trigger = await make(api, request(`v1,whsec_${key}\n`));
  const sent = (id: string, by: string) => post(api, trigger, "{}", standardHeaders(by, id, "{}", Date.now()));
  expect(await sent("m1", `whsec_${key}`)).toMatchObject({ status: 202, body: { state: "started" } });
  const patch = (secret: string) =>
    asked(
      api.ask("/v1/triggers/t", {
        method: "PATCH",
        headers: { "content-type": "Application/JSON; charset=UTF-8" },
        body: JSON.stringify({ secret }),
      }),
    );
  for (const wrong of [`WHSEC_${key}`, "whsec_short-of-a-key", "v1a,whpk_and-a-public-key"]) {
    expect(await patch(wrong)).toMatchObject({ status: 400, body: { error: { param: "secret" } } });
  }
  expect(await sent("m2", `whsec_${key}`)).toMatchObject({ status: 202 });
  const [next, last] = [`whsec_${"B".repeat(43)}=`, `whsec_${"C".repeat(43)}=`];
  expect(await patch(`v1,${next} v1,${last}`)).toMatchObject({ status: 200 });
  expect(await sent("m3", next)).toMatchObject({ status: 202 });
  expect(await sent("m4", last)).toMatchObject({ status: 202 });
  expect(await sent("m5", `whsec_${key}`)).toMatchObject({ status: 401 });
});

test("of concurrently created triggers a project keeps a hundred, and further ones are refused", async () => {
  const api = await opened();
  const asks = { name: "first", verify: { scheme: "standard" }, run: GAME };
  const first = await make(api, asks);
  const row = await getTrigger(databaseOf(env), api.scope, first.id);
  if (row === null) throw new Error("it was not kept");
  const { org_id: _, project_id: __, ...made } = row;
  // A seal is bound to its row's id: a copy could not be opened, nor sealed again.
  const plain = { ...made, sealed_secret: "sealed" };
  const others = Array.from({ length: LIMITS.triggersPerProject }, (___, at) => ({ ...plain, id: `${row.id}${at}` }));
  const kept = await Promise.all(
    others.map((one) => insertTrigger(databaseOf(env), api.scope, { ...one, name: one.id }, null)),
  );
  expect(kept.toSorted()).toEqual(["full", ...kept.slice(1).map(() => "inserted")]);
  expect(await asked(api.post("/v1/triggers", { ...asks, name: "another" }))).toMatchObject({
    ...{
      status: 409,
      body: {
        error: { code: "conflict", message: "the project already has 100 triggers, the maximum: delete some first" },
      },
    },
  });
  const long = { ...GAME, metadata: { long: "x".repeat(LIMITS.triggerRunCharacters) } };
  expect(await asked(api.post("/v1/triggers", { ...asks, run: long }))).toMatchObject({
    ...{
      status: 400,
      body: { error: { param: "run", message: expect.stringContaining("upload the rows as a dataset") } },
    },
  });
});

test("a test of a payload shows what it would do, and starts nothing", async () => {
  const api = await opened();
  const trigger = await make(api, { ...onPush, run: { ...onPush.run, ...GAME } });
  const tried = async (body: object) => (await asked(api.post(`/v1/triggers/${trigger.id}/test`, body))).body;
  expect(await tried({ payload: push.body })).toMatchObject({
    ...{ verified: null, would: "begin", errors: [] },
    request: { environment: "guess-number", metadata: { sha: push.body.after } },
  });
  expect(await tried({ payload: { ...push.body, deleted: true } })).toMatchObject({
    would: "ignore",
    when: [
      { path: "$.ref", holds: true },
      { path: "$.deleted", holds: false, found: true },
    ],
  });
  expect(await tried({ payload: { ref: "refs/heads/main", deleted: false } })).toMatchObject({
    would: "refuse",
    errors: [{ param: "map.metadata.sha" }],
  });
  const body = JSON.stringify(push.body);
  const headers = { ...push.headers, "x-hub-signature-256": githubSignature(onPush.verify.secret, body) };
  expect(await tried({ body, headers })).toMatchObject({ verified: true, would: "begin", event: "push" });
  expect(await tried({ body: `${body} `, headers })).toMatchObject({ verified: false, would: "refuse" });
  for (const odd of [{ "a b": "x" }, { "x-one": "a\nb" }, { "x-one": "\u20ac" }]) {
    const refused = await tried({ body, headers: odd });
    const param = expect.stringMatching(/^headers/);
    expect(refused.error, JSON.stringify(odd)).toMatchObject({ code: "invalid_request", param });
  }
  expect((await asked(api.ask("/v1/runs"))).body.data).toEqual([]);
  expect(await logOf(api, trigger)).toEqual([]);
});

test("a trigger may have a cap, and a test of a payload reports that its endpoint lacks prices", async () => {
  const api = await opened();
  const run = { ...onPush.run, ...GAME, sampling: { max_tokens: 8 }, max_cost_micros: 5 };
  const trigger = await make(api, { ...onPush, run });
  const { body } = await asked(api.post(`/v1/triggers/${trigger.id}/test`, { payload: push.body }));
  expect(body).toMatchObject({ would: "refuse", errors: [{ code: "prices_required", param: "endpoint" }] });
});

test("only a caller who may start runs creates a trigger; who changes its run or secret owns its runs", async () => {
  const { call, keyWith, admin, scope } = await openTenant();
  const limited = await keyWith({ scopes: ["triggers:write"] });
  await call(await keyWith({}), "POST /v1/endpoints", { name: "policy", base_url: env.MODEL_URL, probe: false });
  const request = {
    name: "t",
    verify: { scheme: "standard", secret: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX" },
    run: GAME,
  };
  expect((await call(limited, "POST /v1/triggers", request)).body.error.code).toBe("forbidden");
  const id = `key_${crypto.randomUUID()}`;
  const made = await call(await keyWith({ id }), "POST /v1/triggers", request, { "idempotency-key": "k" });
  expect(made).toMatchObject({ status: 201, body: { created_by: id, secret: null } });
  const again = await call(await keyWith({ id: `${id}2` }), "POST /v1/triggers", request, { "idempotency-key": "k" });
  expect(again.body).toEqual(made.body);
  expect((await call(limited, "PATCH /v1/triggers/t", { name: "t", disabled: true })).body.created_by).toBe(id);
  const secret = "known-to-whoever-set-it";
  for (const patch of [{ map: {} }, { secret }, { disabled: false }, { concurrency: "allow" }]) {
    const { body } = await call(limited, "PATCH /v1/triggers/t", patch);
    expect(body.error?.code, JSON.stringify(patch)).toBe("forbidden");
  }
  const enabled = await call(await keyWith({}), "PATCH /v1/triggers/t", { disabled: false, concurrency: "queue" });
  expect(enabled.body).toMatchObject({ created_by: id, disabled: false });
  const signer = `key_${crypto.randomUUID()}`;
  const signed = await call(await keyWith({ id: signer }), "PATCH /v1/triggers/t", { secret });
  expect(signed.body).toMatchObject({ created_by: signer, concurrency: "queue" });
  const other = `key_${crypto.randomUUID()}`;
  const changed = await call(await keyWith({ id: other }), "PATCH /v1/triggers/t", { map: { seed: "$.seed" } });
  expect(changed.body).toMatchObject({ created_by: other, concurrency: "queue", map: { seed: "$.seed" } });
  const { data } = (await call(admin, "GET /v1/triggers", undefined, { "rollcall-project": scope.projectId })).body;
  expect(data).toEqual([changed.body]);
});
