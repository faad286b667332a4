import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { EnvironmentView } from "../../../src/contract/run.ts";
import { openMeans, rolloutFetch } from "../../../src/kernel/environment/capabilities.ts";
import { openSecrets } from "../../../src/kernel/kit/secret-values.ts";
import { openPlatform, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { script } from "../script.ts";

const VALUE = "sk-search-0123456789";

beforeAll(registerTestEnvironments);

const keyed = () => ({ environment: "keyed", model: script(["fine"]) });

async function refusal(api: TestApi, request: object): Promise<unknown> {
  const endpoint = { base_url: env.MODEL_URL };
  const reply = await api.post("/v1/runs", { endpoint, model: "m", ...request });
  return { status: reply.status, ...(await reply.json<{ error: object }>()).error };
}

const setSecret = (api: TestApi, value: string) => api.post("/v1/secrets", { name: "SEARCH_KEY", value });

test("a run whose environment needs a secret is refused until the secret is set, with what to do", async () => {
  const api = await openPlatform();
  expect(await refusal(api, keyed())).toMatchObject({
    status: 400,
    code: "unmet_need",
    param: "environment",
    message: 'keyed needs secret:SEARCH_KEY, which is not set: POST /v1/secrets {"name": "SEARCH_KEY", "value": …}',
  });
  await setSecret(await openPlatform(), VALUE);
  expect(await refusal(api, keyed())).toMatchObject({ code: "unmet_need" });
  await setSecret(api, VALUE);
  const run = await api.finish(keyed());
  expect(run).toMatchObject({ status: "completed", report: { reward: { mean: VALUE.length } } });
});

test("a secret that an environment writes out is removed before anything is stored", async () => {
  const api = await openPlatform();
  await setSecret(api, VALUE);
  const run = await api.finish(keyed());
  const rollout = await api.rollout(rolloutAt(run.id));
  expect(rollout.state).toEqual({ length: VALUE.length, heard: "Bearer [secret]" });
  const failed = await api.finish({ ...keyed(), environment_args: { fail: true } });
  const [row] = await api.results(failed.id);
  expect(row?.error?.message).toBe("setupState: the service refused [secret]");
  expect(JSON.stringify(row)).not.toContain(VALUE);
});

test("a secret that is deleted before a rollout begins ends it as a failure of the environment", async () => {
  const api = await openPlatform();
  expect(await openSecrets(env, api.scope, ["fetch", "secret:SEARCH_KEY"], 0)).toEqual({});
  await setSecret(api, VALUE);
  const needs = ["secret:SEARCH_KEY"];
  const at = 1_000_000;
  expect(await openSecrets(env, api.scope, needs, at)).toEqual({ SEARCH_KEY: VALUE });
  await api.ask("/v1/secrets/SEARCH_KEY", { method: "DELETE" });
  expect(await openSecrets(env, api.scope, needs, at + 3999)).toEqual({ SEARCH_KEY: VALUE });
  expect(await openSecrets(env, api.scope, needs, at + 5000)).toEqual({});
});

test("a secret that is set again is available at once to rollouts that missed it", async () => {
  const api = await openPlatform();
  const needs = ["secret:SEARCH_KEY"];
  expect(await openSecrets(env, api.scope, needs, 0)).toEqual({});
  await setSecret(api, VALUE);
  expect(await openSecrets(env, api.scope, needs, 0)).toEqual({ SEARCH_KEY: VALUE });
});

test("a need this platform does not offer is refused by name", async () => {
  const api = await openPlatform();
  expect(await refusal(api, { environment: "needs-gpu" })).toMatchObject({
    code: "unmet_need",
    param: "environment",
    message: "needs-gpu needs gpu, which this platform does not offer",
  });
});

test("an environment that needs arguments is listed, and can be played with arguments", async () => {
  const api = await openPlatform();
  const { data } = await (await api.ask("/v1/environments?search=asking")).json<{ data: EnvironmentView[] }>();
  expect(data.find(({ id }) => id === "asking")).toMatchObject({
    args: { required: ["word"] },
    dataset: null,
    row: null,
    judges: [],
  });
  const run = { environment: "asking", model: script(["fine"]) };
  expect(await refusal(api, { ...run, environment_args: { word: "" } })).toMatchObject({
    code: "invalid_request",
    param: "environment_args",
    message: "asking cannot be built from these arguments: the word is empty",
  });
  expect(await refusal(api, { ...run, environment_args: { word: "yes" } })).toMatchObject({
    status: 202,
  });
});

test("code that declares more than its run was accepted with gets no more", async () => {
  const api = await openPlatform();
  await setSecret(api, VALUE);
  const declared = ["secret:SEARCH_KEY", "fetch"] as const;
  const opened = await openMeans(env, { scope: api.scope, needs: ["sql"] }, declared, 0);
  expect([opened.needs, opened.secrets]).toEqual([[], {}]);
  const turn = () => Promise.reject(new Error("a call was made"));
  const fetch = rolloutFetch(env, () => 0, opened, { turn, signal: () => AbortSignal.abort() });
  await expect(fetch("https://there.example/")).rejects.toThrow("is used but not declared");
  const before = await openMeans(env, { scope: api.scope }, declared, 0);
  expect([before.needs, before.secrets]).toEqual([[...declared], { SEARCH_KEY: VALUE }]);
});
