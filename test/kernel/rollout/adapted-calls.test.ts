/** What an endpoint refuses in a request is left out of later calls; extra members of replies are sent back to it. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { EndpointView } from "../../../src/contract/endpoint.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Fault } from "../../fakes/scripted-model.ts";
import { judgement, registerEssays, topics } from "../essays.ts";
import { openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questionScript, script, type Turns } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
});

const refuses = (message: string): Fault => ({ kind: "status", status: 400, body: { error: { message } } });
/** A completion with members that no typed reply has. */
const says = (message: object, finish_reason = "stop", more: object = {}): Fault => ({
  kind: "status",
  status: 200,
  body: { id: "c", choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }], ...more },
});
const QUERY = { id: "call_1", type: "function", function: { name: "query", arguments: '{"sql":"select 1"}' } };

const RIGHT_ROW = [{ question: "What is 2 + 2?", answer: "#### 4" }];

const ROW = { seed_sql: "create table t (a integer)", check_sql: "select a from t" };

let made = 0;
async function endpoint(more: object = {}): Promise<EndpointView> {
  made += 1;
  const request = { name: `adapted-${made}`, base_url: env.MODEL_URL, probe: false, ...more };
  return await (await platform.post("/v1/endpoints", request)).json();
}

const refusedBy = async ({ id }: EndpointView) =>
  (await (await platform.ask(`/v1/endpoints/${id}`)).json<EndpointView>()).refuses;

/** A run of `rollouts` rollouts, one after the other, without retries. */
async function play(at: EndpointView, turns: Turns, rollouts: number, more: object = {}) {
  const model = script([]);
  const row = { question: questionScript(turns), answer: "[]", ...ROW };
  const dataset = Array.from({ length: rollouts }, () => row);
  const environment_args = { rows: "uploaded" };
  const request = { environment: "tool-sql", environment_args, dataset, endpoint: at.name, model };
  const alone = { min_scored: 0, max_concurrent: 1, limits: { max_retries: 0 } };
  const run = await platform.finish({ ...request, ...alone, ...more });
  const ids = Array.from({ length: rollouts }, (_, group) => rolloutAt(run.id, group));
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  return { run, rollouts: await Promise.all(ids.map((id) => platform.rollout(id))), keys };
}

test("a server that refuses strict tools is called without, as a new call, and later calls omit it at once", async () => {
  const at = await endpoint();
  const fault = refuses(
    `Invalid JSON payload received. Unknown name "strict" at 'tools[0].function': Cannot find field.`,
  );
  const { run, rollouts, keys } = await play(at, [{ fault, holds: '"strict":true', reply: "done" }], 2);
  expect(run.counts).toMatchObject({ scored: 2, failed: {} });
  expect(await refusedBy(at)).toEqual(["tools.strict"]);
  const [first, second] = rollouts.map(({ id }) => id);
  expect(keys).toEqual([`${first}:0`, `${first}:0:tools.strict`, `${second}:0:tools.strict`]);
  expect(rollouts.map(({ failed_calls }) => failed_calls.length)).toEqual([1, 0]);
});

test("if leaving a parameter out does not help the call fails, and nothing is remembered", async () => {
  const at = await endpoint();
  const fault = refuses(`Unknown name "strict" at 'tools[0].function': Cannot find field.`);
  const { run, rollouts, keys } = await play(at, [{ fault }], 1);
  expect(run.counts).toMatchObject({ scored: 0, failed: { provider: 1 } });
  const [id] = rollouts.map((rollout) => rollout.id);
  expect(keys).toEqual([`${id}:0`, `${id}:0:tools.strict`]);
  expect(rollouts[0]?.failed_calls).toMatchObject([{ status: 400 }, { status: 400 }]);
  expect(await refusedBy(at)).toEqual([]);
});

test("a kill between a refused call and the adapted one makes both again, under the same keys", async () => {
  const at = await endpoint();
  const fault = refuses(`Unknown name "strict" at 'tools[0].function': Cannot find field.`);
  const model = script([{ fault, holds: '"strict":true', reply: "done" }], undefined, { held: true });
  const row = { question: "count", answer: "[]", ...ROW };
  const environment_args = { rows: "uploaded" };
  const run = await platform.start({
    environment: "tool-sql",
    environment_args,
    dataset: [row],
    endpoint: at.name,
    model,
    limits: { max_retries: 0 },
  });
  const id = rolloutAt(run.id);
  const keys = [`${id}:0`, `${id}:0:tools.strict`] as const;
  await requestsOf(model, 1);
  await release(keys[0]);
  await requestsOf(model, 2);
  await abortAllDurableObjects();
  expect(await refusedBy(at)).toEqual([]);
  await requestsOf(model, 3);
  await release(keys[0]);
  await requestsOf(model, 4);
  // Releases the call that was cut off, and its repeat.
  await release(keys[1]);
  await release(keys[1]);
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 1, failed: {} });
  expect((await requestsOf(model)).map(({ idempotency_key }) => idempotency_key)).toEqual([...keys, ...keys]);
  expect(await refusedBy(at)).toEqual(["tools.strict"]);
});

test("a judge's endpoint that does not stream is asked for a whole reply, without a retry", async () => {
  const at = await endpoint();
  const fault = refuses("Your organization must be verified to stream this model.");
  const judge = script([{ fault, holds: '"stream":true', reply: judgement("good") }]);
  const run = await platform.finish({
    environment: "essays",
    dataset: topics(1),
    model: script(["An essay."]),
    judges: { default: { endpoint: at.name, model: judge } },
    limits: { max_retries: 0 },
  });
  expect(await requestsOf(judge)).toHaveLength(2);
  expect(run.counts).toMatchObject({ scored: 1 });
  expect(await refusedBy(at)).toEqual(["streams"]);
});

test("a server that does not stream is asked for whole replies, from the first refusal on", async () => {
  const at = await endpoint();
  const fault = refuses("Streaming is not supported for this model.");
  const { run, rollouts, keys } = await play(at, [{ fault, holds: '"stream":true', reply: "done" }], 2);
  expect(run.counts).toMatchObject({ scored: 2, failed: {} });
  expect(await refusedBy(at)).toEqual(["streams"]);
  const [first, second] = rollouts.map(({ id }) => id);
  expect(keys).toEqual([`${first}:0`, `${first}:0:streams`, `${second}:0:streams`]);
  expect(rollouts.map(({ turns }) => turns[0]?.completion["content"])).toEqual(["done", "done"]);
  expect(rollouts[0]?.usage.completion_tokens).toBeGreaterThan(0);
});

test.each([
  ["leaves out token ids", { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 }, [6, 3]],
  ["does not say how many token ids there are", undefined, [3, 3]],
])("a stream that %s is not used: the reply is requested whole, now and later", async (_, usage, counted) => {
  const at = await endpoint();
  const choice = { index: 0, delta: { content: "done" }, finish_reason: "stop", token_ids: [7] };
  const text = [
    { id: "c", prompt_token_ids: [1, 2], choices: [choice] },
    { choices: [], usage },
  ]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .join("");
  const reply = { content: "done", prompt_token_ids: [1, 2], token_ids: [5, 6, 7], logprobs: [-1, -1, -1] };
  const fault: Fault = { kind: "stream", text: `${text}data: [DONE]\n\n` };
  const { run, rollouts } = await play(at, [{ fault, holds: '"stream":true', reply }], 2);
  expect(run.counts).toMatchObject({ scored: 2, failed: {} });
  expect(await refusedBy(at)).toEqual(["streams"]);
  // The tokens of the unusable reply were paid for.
  expect(rollouts.map((rollout) => rollout.usage.completion_tokens)).toEqual(counted);
});

test("members that a server adds to a message and to a call are sent back to it", async () => {
  const at = await endpoint();
  const called = { ...QUERY, extra_content: { google: { thought_signature: "c2lnbmVk" } } };
  const message = {
    content: null,
    reasoning: "so",
    reasoning_details: [{ type: "reasoning.encrypted", data: "b64" }],
    tool_calls: [called],
  };
  const lost = refuses("Function call is missing a thought_signature in functionCall parts.");
  const all = '"reasoning":"so","reasoning_details":[{"type":"reasoning.encrypted","data":"b64"}]';
  const turns: Turns = [
    { fault: says(message, "tool_calls") },
    {
      fault: lost,
      lacks: '"thought_signature":"c2lnbmVk"',
      reply: { content: null, tool_calls: [{ id: "call_2", name: "query", arguments: { sql: "select 2" } }] },
    },
    { fault: lost, lacks: all, reply: "done" },
  ];
  const { run, rollouts } = await play(at, turns, 1);
  expect(run.counts).toMatchObject({ scored: 1 });
  expect(rollouts[0]).toMatchObject({ failed_calls: [], turns: [{}, {}, {}] });
  expect(rollouts[0]?.completion).not.toContainEqual(expect.objectContaining({ provider_fields: expect.anything() }));
});

test("a member that its server does not accept back is left out, and the endpoint remembers it", async () => {
  const at = await endpoint();
  const message = { content: null, reasoning: "so", tool_calls: [QUERY] };
  const fault = refuses(
    `'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]`,
  );
  const { run, rollouts } = await play(
    at,
    [{ fault: says(message, "tool_calls") }, { fault, holds: '"reasoning":"so"', reply: "done" }],
    2,
  );
  expect(run.counts).toMatchObject({ scored: 2, failed: {} });
  expect(await refusedBy(at)).toEqual(["messages.reasoning"]);
  expect(rollouts.map(({ failed_calls }) => failed_calls.length)).toEqual([1, 0]);
});

test("results of two calls to one tool without ids show which call they belong to", async () => {
  const at = await endpoint();
  const { id: _, ...call } = QUERY;
  const other = { ...call, function: { name: "query", arguments: '{"sql":"select 2"}' } };
  const { rollouts } = await play(
    at,
    [{ fault: says({ content: null, tool_calls: [call, other] }, "tool_calls") }, "done"],
    1,
  );
  const ids = (rollouts[0]?.completion ?? []).flatMap(({ tool_call_id }) =>
    tool_call_id === undefined ? [] : [tool_call_id],
  );
  expect(new Set(ids).size).toBe(2);
  const said = rollouts[0]?.turns[0]?.completion["tool_calls"];
  expect(said).toEqual(ids.map((id) => expect.objectContaining({ id })));
});

test("a model gets a parameter that it needs, even if another model of its endpoint refuses it", async () => {
  const at = await endpoint({ refuses: ["messages.reasoning_content"] });
  const message = { content: null, reasoning_content: "so", tool_calls: [QUERY] };
  const fault = refuses("reasoning_content is missing in assistant tool call message at index 2");
  const { run, rollouts } = await play(
    at,
    [{ fault: says(message, "tool_calls") }, { fault, lacks: '"reasoning_content":"so"', reply: "done" }],
    1,
  );
  expect(run.counts).toMatchObject({ scored: 1, failed: {} });
  expect(rollouts[0]?.failed_calls).toMatchObject([{ status: 400 }]);
  expect(await refusedBy(at)).toEqual(["messages.reasoning_content"]);
});

test("streams that a server refuses because of a setting of one run are not taken from the other runs", async () => {
  const at = await endpoint();
  const fault = refuses("`prompt_logprobs` are not available when `stream=True`.");
  const turns: Turns = [{ fault, holds: '"stream":true', reply: "done" }];
  const { run, keys } = await play(at, turns, 2, { sampling: { extra_body: { prompt_logprobs: 1 } } });
  expect(run.counts).toMatchObject({ scored: 2, failed: {} });
  expect(keys.map((key) => key?.endsWith(":0:streams"))).toEqual([false, true, false, true]);
  expect(await refusedBy(at)).toEqual([]);
});

test("if nothing more can be remembered the refusal fails the call", async () => {
  const full = Array.from({ length: LIMITS.refusedNames }, (_, at) => `messages.m${at}`);
  const at = await endpoint({ refuses: full });
  const fault = refuses(`Unknown name "strict" at 'tools[0].function': Cannot find field.`);
  const { run, keys } = await play(at, [{ fault, holds: '"strict":true', reply: "done" }], 1);
  expect(run.counts).toMatchObject({ scored: 0, failed: { provider: 1 } });
  expect(keys).toHaveLength(1);
  expect(await refusedBy(at)).toEqual(full);
});

test("refused parameters can be set in advance, and are validated", async () => {
  const at = await endpoint({ refuses: ["tools.strict"] });
  const fault = refuses(`Unknown name "strict" at 'tools[0].function': Cannot find field.`);
  const { run, rollouts } = await play(at, [{ fault, holds: '"strict":true', reply: "done" }], 1);
  expect(run.counts).toMatchObject({ scored: 1 });
  expect(rollouts[0]?.failed_calls).toEqual([]);
  const reply = await platform.post("/v1/endpoints", {
    name: "odd",
    base_url: at.base_url,
    probe: false,
    refuses: ["temperature"],
  });
  expect([reply.status, JSON.stringify(await reply.json())]).toEqual([400, expect.stringContaining("refuses")]);
});

test("the usage of an aborted reply is counted with that of the complete one", async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };
  const half = says({ content: "\\boxed{" }, "error", { usage });
  const whole = { content: "\\boxed{4}", usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } };
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: RIGHT_ROW,
    model: script([{ fault: half, times: 1, reply: whole }]),
  });
  const rollout = await platform.rollout(rolloutAt(run.id, 0));
  expect(rollout).toMatchObject({ reward: 1, usage: { prompt_tokens: 107, completion_tokens: 53, total_tokens: 160 } });
  expect(rollout.usage.lost).toBeUndefined();
  expect(run.report.usage).toMatchObject({ prompt_tokens: 107, completion_tokens: 53 });
});

test("a reply without usable usage has an unknown cost, and so has its run", async () => {
  const body = {
    choices: [{ message: { content: "\\boxed{4}" }, finish_reason: "halted" }],
    usage: { prompt_tokens: null },
  };
  const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };
  const model = script([{ fault: { kind: "status", status: 200, body } }]);
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: RIGHT_ROW,
    model,
    endpoint: { base_url: env.MODEL_URL, prices },
  });
  expect(run.report.usage).toMatchObject({ cost_micros: null, lost: { calls: 1 } });
  expect(await platform.rollout(rolloutAt(run.id, 0))).toMatchObject({
    reward: 1,
    cost: { policy_micros: null },
    turns: [{ usage: null, finish_reason: "halted" }],
  });
});

test.each([
  ["a reply that a policy stopped", says({ content: "x" }, "content_filter", { usage: null })],
  ["a reply that was broken off", says({ content: "x" }, "error")],
  ["a stream without its end", { kind: "stream" } as const],
])("%s, without usage, leaves an unknown cost", async (_what, fault) => {
  const prices = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };
  const request = { environment: "gsm8k", dataset: RIGHT_ROW, model: script([{ fault }]), min_scored: 0 };
  const endpoint = { base_url: env.MODEL_URL, prices };
  const run = await platform.finish({ ...request, endpoint, limits: { max_retries: 0 } });
  expect(run).toMatchObject({ counts: { failed: { provider: 1 } }, report: { usage: { cost_micros: null } } });
  expect(await platform.rollout(rolloutAt(run.id, 0))).toMatchObject({ cost: { policy_micros: null } });
});
