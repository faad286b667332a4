/** Servers that repeat the key they were sent, in successful replies. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { EndpointView } from "../../../src/contract/endpoint.ts";
import type { ReplyParts } from "../../fakes/completion-body.ts";
import { judgement, registerEssays, topics } from "../essays.ts";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { script } from "../script.ts";
import { everythingStored } from "../stored.ts";

let api: TestApi;
beforeAll(async () => {
  registerEssays();
  api = await openPlatform();
});

const newKey = () => `rk-${crypto.randomUUID()}`;
const SAID = "You sent {authorization}, which is {base64}.";
/** Every part of a reply that is stored. */
const ECHO: ReplyParts = {
  content: SAID,
  reasoning_content: SAID,
  finish_reason: "{authorization}",
  token_ids: [1, 2],
  logprobs: [-0.5, -0.5],
  extra: { id: SAID, model: SAID, weight_version: SAID, "{authorization}": SAID },
};
const CALLS: ReplyParts = {
  content: SAID,
  tool_calls: [{ id: SAID, name: "{authorization}", arguments: { key: SAID } }],
};
const garbage = (text: string) => [{ fault: { kind: "garbage", text } }] as const;
const refused = [{ fault: { kind: "status", status: 400, body: { error: [SAID] } } }] as const;

/** The key, a long piece of it, or its base64. */
function tracesOf(key: string): RegExp {
  const base64 = btoa(`Bearer ${key}`).slice(10, -4);
  return new RegExp(`${key.slice(0, 8)}|${key.slice(-8)}|${base64}`);
}

const one = { dataset: topics(1), min_scored: 0, limits: { max_retries: 0 } };

test("nothing stored of a policy's replies has its key: texts, names, ids, arguments, or a body that is not JSON", async () => {
  const api_key = newKey();
  const endpoint = { base_url: env.MODEL_URL, api_key };
  const judges = { default: { endpoint: { base_url: env.MODEL_URL }, model: script(["no"]) } };
  const played = await Promise.all(
    [[ECHO], [CALLS], garbage("{authorization}"), garbage('{"a": {authorization}}'), refused].map((turns) =>
      api.finish({ ...one, environment: "essays", endpoint, judges, model: script(turns) }),
    ),
  );
  // An environment with tools.
  const environment = "calculator";
  const tools = { environment, num_examples: 1, min_scored: 0, endpoint };
  played.push(await api.finish({ ...tools, model: script([CALLS, SAID]) }));
  const [echo, , cut] = played.map(({ id }) => rolloutAt(id));
  const said = (await api.rollout(echo ?? "")).completion[0]?.["content"];
  expect(said).toMatch(/^You sent Bearer \[key\], which is \S+\[key\]/);
  expect((await api.rollout(cut ?? "")).error?.message).toMatch(/^the reply is not JSON: status 200/);
  const stored = await everythingStored(api, played);
  for (const text of stored) expect(text).not.toMatch(tracesOf(api_key));
  expect(stored.filter((text) => text.includes(played[0]?.id ?? "?")).length).toBeGreaterThan(2);
});

test("nothing stored of replies of judges, embedding models and probes has their key", async () => {
  const api_key = newKey();
  const endpoint = { base_url: env.MODEL_URL, api_key };
  const told = [
    script([judgement("good", SAID)]),
    script([SAID]),
    script([judgement(SAID)]),
    script([{ content: "", reasoning_content: SAID }]),
    script(garbage("{authorization}")),
    script(refused),
  ];
  const policy = { base_url: env.MODEL_URL };
  const model = script(["An essay."]);
  const runs = await Promise.all(
    told.map((judge) =>
      api.finish({
        ...{ ...one, environment: "essays", model, endpoint: policy },
        judges: { default: { endpoint, model: judge } },
      }),
    ),
  );
  expect((await api.rollout(rolloutAt(runs[0]?.id ?? ""))).judgements).toMatchObject([
    { verdict: "good", reason: expect.stringContaining("Bearer [key]") },
  ]);
  const alike = {
    ...{ type: "text_similarity", name: "alike", evaluation_metric: "cosine", pass_threshold: 0.5 },
    ...{ input: "{{sample.output_text}}", reference: "{{item.answer}}" },
  };
  for (const turns of [[SAID], garbage("{authorization}")]) {
    const environment_args = { template: "{{item.question}}", graders: [alike] };
    const run = await api.finish({
      ...{ ...one, environment: "graded-dataset", environment_args, model, endpoint: policy },
      dataset: [{ item: { question: "2 + 2", answer: "4" } }],
      judges: { embedding: { endpoint, model: script(turns) } },
    });
    runs.push(run);
  }
  const probes = [[ECHO], [CALLS], garbage("{authorization}"), refused].map(async (turns, at) => {
    const request = { ...endpoint, name: `repeats-${at}`, model: script(turns) };
    return await (await api.post("/v1/endpoints", request)).text();
  });
  const replies = await Promise.all(probes);
  for (const reply of replies) EndpointView.parse(JSON.parse(reply));
  const stored = await everythingStored(api, runs);
  for (const text of [...stored, ...replies]) expect(text).not.toMatch(tracesOf(api_key));
});

test("a placeholder key, for servers that check none, changes no reply", async () => {
  const model = script(["The list is EMPTY."]);
  const endpoint = { base_url: env.MODEL_URL, api_key: "EMPTY" };
  const judges = { default: { endpoint, model: script([judgement("good", "not EMPTY")]) } };
  const run = await api.finish({ ...one, environment: "essays", endpoint, judges, model });
  expect((await requestsOf(model))[0]?.authorization).toBe("Bearer EMPTY");
  expect(await api.rollout(rolloutAt(run.id))).toMatchObject({
    completion: [{ content: "The list is EMPTY." }],
    judgements: [{ reason: "not EMPTY" }],
  });
});
