import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { EnvironmentView } from "../../../../src/contract/run.ts";
import { openPlatform, type TestApi } from "../../platform.ts";
import { registerTestEnvironments } from "../../registered.ts";

let api: TestApi;
beforeAll(async () => {
  registerTestEnvironments();
  api = await openPlatform();
  const made = { name: "openai", base_url: env.MODEL_URL, probe: false };
  expect((await api.post("/v1/endpoints", made)).status).toBe(201);
});

async function refusal(request: object): Promise<unknown> {
  const endpoint = { base_url: env.MODEL_URL };
  const reply = await api.post("/v1/runs", { endpoint, model: "m", ...request });
  return { status: reply.status, ...(await reply.json<{ error: object }>()).error };
}

test("an environment shows which judges a run must name", async () => {
  const reply = await api.ask("/v1/environments/judged");
  expect(EnvironmentView.parse(await reply.json()).judges).toEqual(["default"]);
});

test("a judge of the rubric that the run does not configure is missing", async () => {
  expect(await refusal({ environment: "judged" })).toMatchObject({
    status: 400,
    code: "missing_judge",
    param: "judges.default",
  });
});

test("a judge that is not in the rubric is an unknown field", async () => {
  const judge = { endpoint: "openai", model: "m" };
  const judges = { default: judge, defualt: judge };
  const unknown = { status: 400, code: "unknown_field" };
  const misspelt = await refusal({ environment: "judged", judges });
  expect(misspelt).toMatchObject({ ...unknown, param: "judges.defualt" });
  const none = await refusal({ environment: "calculator", num_examples: 1, judges });
  expect(none).toMatchObject({ ...unknown, param: "judges.default" });
});

test("a judge's endpoint is looked up by name, and a missing one is named", async () => {
  const judges = { default: { endpoint: "nobody", model: "m" } };
  expect(await refusal({ environment: "judged", judges })).toMatchObject({
    status: 404,
    code: "not_found",
    param: "judges.default.endpoint",
  });
});

test("the policy's endpoint is never used for a judge by default", async () => {
  const judges = { default: { model: "m" } };
  expect(await refusal({ environment: "judged", judges })).toMatchObject({
    status: 400,
    param: "judges.default.endpoint",
  });
});
