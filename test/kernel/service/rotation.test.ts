/** ROLLCALL_SECRET is replaced after a run, its endpoint and its project's secrets were made under the old one. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Resealed } from "../../../src/contract/reseal.ts";
import { RunView } from "../../../src/contract/run.ts";
import { databaseOf } from "../../../src/kernel/db/database.ts";
import { getEndpoint } from "../../../src/kernel/db/endpoints.ts";
import { getRun } from "../../../src/kernel/db/runs.ts";
import { findSecret } from "../../../src/kernel/db/secrets.ts";
import { EndpointUnusable, openEndpoint } from "../../../src/kernel/endpoint/call.ts";
import { openSecrets } from "../../../src/kernel/kit/secret-values.ts";
import { sealKeyIds } from "../../../src/kernel/kit/secrets.ts";
import { reseal } from "../../../src/kernel/service/reseal.ts";
import { findTrigger } from "../../../src/triggers/queries.ts";
import { secretsOfWebhook } from "../../../src/webhooks/queries.ts";
import { WAIT } from "../../hang-limits.ts";
import { expectLaw, openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const OLD = env.ROLLCALL_SECRET;
/** Always accepted in tests, so that other files, which share the database, can read what this one seals again. */
const NEW = env.ROLLCALL_SECRETS_BEFORE ?? "";
const KEY = "sk-of-before-the-rotation";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(rotateBack);

function rotate(): void {
  Object.assign(env, { ROLLCALL_SECRET: NEW, ROLLCALL_SECRETS_BEFORE: OLD });
}

function rotateBack(): void {
  Object.assign(env, { ROLLCALL_SECRET: OLD, ROLLCALL_SECRETS_BEFORE: NEW });
}

async function keyIdOf(sealed: Promise<string | null | undefined>): Promise<string | undefined> {
  return (await sealed)?.split(".")[0];
}

test("a rotation in the middle of a run breaks nothing: ids, keys and repeats keep working", async () => {
  rotateBack();
  const hangs = [{ fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" }] as const;
  const model = script(RIGHT, { hang: hangs });
  const request = {
    ...{ environment: "gsm8k", dataset: questions(6, ["hang", "hang"]), model, max_concurrent: 2 },
    endpoint: { base_url: env.MODEL_URL, api_key: KEY },
  };
  const idempotency = { "idempotency-key": crypto.randomUUID() };
  const run = RunView.parse(await (await platform.post("/v1/runs", request, idempotency)).json());
  await requestsOf(model, 2);
  rotate();
  await abortAllDurableObjects();
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 6, failed: {} } });
  expectLaw(ended.counts);
  expect(new Set((await requestsOf(model)).map(({ authorization }) => authorization))).toEqual(
    new Set([`Bearer ${KEY}`]),
  );
  const ids = (await platform.results(run.id)).map(({ rollout_id }) => rollout_id);
  expect(new Set(ids.map((id) => id.split("_")[1]))).toEqual(new Set([run.id.slice(4, 30)]));
  for (const id of ids) expect((await platform.rollout(id)).run_id).toBe(run.id);
  const audit = await (await platform.ask(`/v1/runs/${run.id}/audit`)).json();
  expect(audit).toMatchObject({ holds: true });
  const again = await platform.post("/v1/runs", request, idempotency);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.json()).toMatchObject({ id: run.id });
  const more = await platform.finish({ ...request, endpoint: { base_url: env.MODEL_URL }, model: script(RIGHT) });
  expect(more).toMatchObject({ status: "completed", counts: { scored: 6 } });
});

test("using a key seals it again, and resealing does so for everything else; then the old secret may be removed", async () => {
  rotateBack();
  const { scope } = platform;
  const [old] = sealKeyIds(env);
  const names = ["USED", "UNUSED"];
  for (const name of names) await platform.post("/v1/secrets", { name, value: `value of ${name}` });
  const verify = { scheme: "huggingface", secret: "a-secret-that-is-sent" };
  const begins = { environment: "calculator", num_examples: 1, model: "m", endpoint: { base_url: env.MODEL_URL } };
  await platform.post("/v1/triggers", { name: "hook", verify, run: begins });
  const hooks = await platform.post("/v1/webhook-endpoints", { url: "https://hooks.example/in" });
  const { id: webhookId } = await hooks.json<{ id: string }>();
  const push = { delivery: "push", url: "https://trainer.example/batches" };
  const asked = {
    ...{
      kind: "training",
      environment: "calculator",
      group_size: 2,
      batch_size: { rollouts: 2 },
      max_steps: 1,
      trainer: push,
    },
    ...{ model: script(["no"], undefined, { tokens: true }), endpoint: { base_url: env.MODEL_URL, api_key: KEY } },
  };
  const trained = RunView.parse(await (await platform.post("/v1/runs", asked)).json());
  const endpointId = trained.endpoint?.id ?? "";
  await platform.post(`/v1/runs/${trained.id}/cancel`, {});
  const sealed = () => [
    ...names.map(async (name) => (await findSecret(databaseOf(env), scope, name))?.sealed_value),
    getEndpoint(databaseOf(env), scope, endpointId).then((row) => row?.sealed_key),
    getRun(databaseOf(env), scope, trained.id).then((record) => record?.run.sealed_push_secret),
    findTrigger(databaseOf(env), scope, "hook").then((row) => row?.sealed_secret),
    secretsOfWebhook(databaseOf(env), scope, webhookId, 0).then(([row]) => row?.sealed_secret),
  ];
  const keyIds = () => Promise.all(sealed().map(keyIdOf));
  expect(await keyIds()).toEqual([old, old, old, old, old, old]);
  rotate();
  const [current] = sealKeyIds(env);
  expect(await openSecrets(env, scope, ["secret:USED"], 0)).toEqual({ USED: "value of USED" });
  expect(await keyIds()).toEqual([current, old, old, old, old, old]);
  await openEndpoint(env, scope, endpointId, 0);
  expect(await keyIds()).toEqual([current, old, current, old, old, old]);
  expect((await resealAll()).at(-1)).toMatchObject({ remaining: 0, next: null });
  expect(await keyIds()).toEqual(Array(6).fill(current));
  const later = { ...env, ROLLCALL_SECRETS_BEFORE: "" };
  const needs = names.map((name) => `secret:${name}`);
  expect(Object.keys(await openSecrets(later, scope, needs, 0))).toHaveLength(2);
  expect((await openEndpoint(later, scope, endpointId, 5000)).api_key).toBe(KEY);
});

test("a run whose secret is removed dispatches nothing more, and continues when the secret is back", async () => {
  rotateBack();
  const model = script(RIGHT, undefined, { held: true });
  const request = { environment: "gsm8k", dataset: questions(2), model, max_concurrent: 1 };
  const run = await platform.start(request);
  const [first, second] = [rolloutAt(run.id, 0), rolloutAt(run.id, 1)];
  await requestsOf(model, 1);
  Object.assign(env, { ROLLCALL_SECRET: NEW, ROLLCALL_SECRETS_BEFORE: "" });
  await release(`${first}:0`);
  const answered = () =>
    platform.inRun(run.id, (_, { storage }) =>
      storage.sql.exec<{ n: number }>("select count(*) as n from rollouts where status <> 'running'").one(),
    );
  await vi.waitFor(async () => expect(await answered()).toEqual({ n: 1 }), WAIT);
  const alarm = () => platform.inRun(run.id, (object) => object.alarm());
  await expect(alarm()).rejects.toThrow(
    `${run.id} was created under a ROLLCALL_SECRET that this deployment does not have`,
  );
  expect(await requestsOf(model)).toHaveLength(1);
  rotate();
  await alarm();
  await release(`${second}:0`);
  expect(await platform.ended(run.id)).toMatchObject({ status: "completed", counts: { scored: 2, failed: {} } });
});

test("between the two steps of a rotation, with the current secret among the earlier ones, nothing is to be resealed", async () => {
  rotateBack();
  await platform.post("/v1/secrets", { name: "IN_USE", value: "sealed under the secret in use" });
  await resealAll();
  const between = { ...env, ROLLCALL_SECRETS_BEFORE: `${OLD},${NEW}` };
  // Values of other files that no key opens may fill a slice.
  const calls = await resealAll(between);
  expect(calls.map(({ resealed }) => resealed)).toEqual(calls.map(() => 0));
  expect(calls.at(-1)).toMatchObject({ remaining: 0, next: null });
});

test("a value that was not resealed before the old secret was removed reports that, and counts as lost", async () => {
  rotateBack();
  const asked = { name: "left-behind", base_url: env.MODEL_URL, api_key: KEY, probe: false };
  const { id } = await (await platform.post("/v1/endpoints", asked)).json<{ id: string }>();
  rotate();
  const later = { ...env, ROLLCALL_SECRETS_BEFORE: "" };
  await expect(openEndpoint(later, platform.scope, id, 0)).rejects.toThrow(EndpointUnusable);
  const { resealed, lost, unopened } = await reseal(later, `endpoint:${id.slice(0, -1)}`, 1);
  expect(resealed).toBe(0);
  expect(lost).toBeGreaterThan(0);
  expect(unopened).toMatchObject([{ kind: "endpoint", id, reason: "unknown_key" }]);
});

test("values that do not open are named once, and do not hold up the values after them", async () => {
  rotateBack();
  const { orgId, projectId } = platform.scope;
  const newEndpoint = async (name: string, change: string) => {
    const asked = { name, base_url: env.MODEL_URL, api_key: KEY, probe: false };
    const { id } = await (await platform.post("/v1/endpoints", asked)).json<{ id: string }>();
    await env.DB.prepare(`update endpoints set sealed_key = ${change} where id = ?`).bind(id).run();
    return id;
  };
  const [old] = sealKeyIds(env);
  const damaged: string[] = [];
  for (const name of ["first", "second", "third"]) damaged.push(await newEndpoint(name, "substr(sealed_key, 1, 30)"));
  const foreign = await newEndpoint("foreign", "'0' || sealed_key");
  const unmarked = await newEndpoint("unmarked", "'no seal at all'");
  await platform.post("/v1/secrets", { name: "BEHIND", value: "value behind them" });
  const behind = () => keyIdOf(findSecret(databaseOf(env), platform.scope, "BEHIND").then((row) => row?.sealed_value));
  rotate();
  const [current] = sealKeyIds(env);
  expect(await behind()).toBe(old);
  const calls = await resealAll(env, `endpoint:${damaged[0]?.slice(0, -1)}`);
  expect(await behind()).toBe(current);
  const ours = calls
    .flatMap(({ unopened }) => unopened)
    .filter(({ id }) => [...damaged, foreign, unmarked].includes(id));
  const named = (id: string, reason: string) => {
    return { kind: "endpoint", id, organization_id: orgId, project_id: projectId, reason };
  };
  expect(ours).toEqual([
    ...damaged.map((id) => named(id, "damaged")),
    ...[foreign, unmarked].map((id) => named(id, "unknown_key")),
  ]);
  expect((await resealAll()).at(-1)).toMatchObject({ remaining: damaged.length });
  // Once they are set again or deleted, they are no longer reported.
  for (const id of [...damaged, foreign, unmarked]) await platform.ask(`/v1/endpoints/${id}`, { method: "DELETE" });
  expect((await resealAll()).at(-1)).toMatchObject({ remaining: 0 });
});

/**
 * All calls from there on. The first slices are small. Later ones are large, because each call counts all values of the
 * database, which all test files share.
 */
async function resealAll(of: Env = env, from: string | null = null): Promise<readonly Resealed[]> {
  const calls: Resealed[] = [];
  for (let after = from; ; ) {
    const slice = calls.length < 4 ? 2 : 100;
    const call: Resealed = await reseal(of, after, slice);
    expect(call.resealed + call.unopened.length).toBeLessThanOrEqual(slice);
    calls.push(call);
    if (call.next === null) return calls;
    after = call.next;
  }
}
