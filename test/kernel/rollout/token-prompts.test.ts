/** Runs whose prompts are sent as token ids from the second turn on. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { RunView } from "../../../src/contract/run.ts";
import type { Sampling } from "../../../src/contract/sampling.ts";
import { dataset, defineEnvironment, MultiTurnEnv, ToolEnv, tool } from "../../../src/core/entry.ts";
import { decodeRows, type SampleRow, sampleFault } from "../../../src/core/training/sample-row.ts";
import { sampleKey, trainerObject } from "../../../src/kernel/kit/names.ts";
import { openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { type Script, script } from "../script.ts";

const Task = z.object({ question: z.string() });
/** Three turns, after a system message. */
const talkWith = (sampling: Sampling) =>
  defineEnvironment({
    args: z.strictObject({}),
    build: () =>
      new MultiTurnEnv({
        dataset: dataset(Task, [{ question: "Begin ~." }]),
        systemPrompt: "Talk.",
        maxTurns: 3,
        sampling,
        envResponse: () => "Go on ~.",
        rubric: { rewards: { one: () => 1 } },
      }),
  });
for (const [id, sampling] of Object.entries({ "tokens-talk": {}, "tokens-effort": { reasoning_effort: "low" } })) {
  const { args, needs, load } = talkWith(sampling);
  registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
}

/** One tool. */
const tooled = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new ToolEnv({
      dataset: dataset(Task, [{ question: "Begin ~." }]),
      tools: [
        tool({
          name: "hold",
          description: "Holds.",
          parameters: z.object({ what: z.string() }),
          run: ({ what }) => `holds ${what}`,
        }),
      ],
      rubric: { rewards: { one: () => 1 } },
    }),
});
registerOnce({
  ...{ id: "tokens-tool", version: "1.0.0", digest: "sha256:tokens-tool" },
  ...{ args: tooled.args, needs: tooled.needs, load: tooled.load },
});

/** The template drops the thoughts of earlier answers, and the model spells `~` in its own way. */
const ANSWERS = ["<think>so</think>one ~", "two ~", "<think>end</think>three"];

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const modelOf = (more: Partial<Script> = {}) => script(ANSWERS, undefined, { tokens: true, ...more });

const TRAINING = {
  ...{ kind: "training", environment: "tokens-talk", endpoint: { base_url: env.MODEL_URL } },
  ...{ group_size: 2, batch_size: { rollouts: 2 }, max_concurrent: 2, max_steps: 1 },
  ...{ filters: { zero_variance: "keep" }, trainer: { encoding: "jsonl" } },
};

/** The run after its only step, and the rows of its batch. */
async function trained(request: object): Promise<{ run: RunView; rows: SampleRow[] }> {
  const response = await api.post("/v1/runs", { ...TRAINING, ...request });
  if (response.status !== 202) throw new Error(await response.text());
  const { id } = RunView.parse(await response.json());
  const trainer = trainerObject(env, api.scope, id);
  const joined = await trainer.register({ trainer_id: "t", kind: "by hand", last_acked: null });
  if (!joined.ok) throw new Error(JSON.stringify(joined.refusal));
  const { epoch } = joined.value;
  const answer = await trainer.lease({ trainer_id: "t", epoch, want_step: 1, max_wait_s: 20 });
  if (!answer.ok || !("manifest" in answer.value)) throw new Error(JSON.stringify(answer));
  const { lease, manifest } = answer.value;
  const rows: SampleRow[] = [];
  for (const { sha256 } of manifest.objects) {
    const stored = await env.STORE.get(sampleKey(api.scope, id, sha256));
    const text = await new Response(stored?.body.pipeThrough(new DecompressionStream("gzip"))).bytes();
    rows.push(...decodeRows(text, "jsonl"));
  }
  const { batch_id, sha256 } = manifest;
  await trainer.ack(lease.id, { token: lease.token, epoch, batch_id, sha256, produced_version: 1, metrics: {} });
  return { run: await api.ended(id), rows };
}

/** The requests of one rollout, in order. */
async function sentBy(model: string, rollout: string) {
  return (await requestsOf(model)).filter(({ idempotency_key }) => idempotency_key.startsWith(rollout));
}

const sampledIds = (text: string) => [...new TextEncoder().encode(text)].map((id) => (id === 126 ? 512 : id));

test("turns that fork when their prompts are messages are one sample when they are token ids", async () => {
  const forked = await trained({ model: modelOf() });
  expect(forked.rows).toHaveLength(6);
  const model = modelOf();
  const { run, rows } = await trained({ model, prompts: "token_ids" });
  expect(run.prompts).toBe("token_ids");
  expect(run.training?.samples).toMatchObject({ clean: 2, forked: 0, prompts: { token_ids: 4 } });
  expect(rows).toHaveLength(2);
  expect(rows.map(sampleFault)).toEqual([null, null]);
  for (const { rollout_id, token_ids, mask, logprobs } of rows) {
    const sent = await sentBy(model, rollout_id);
    expect(sent.map(({ path }) => path)).toEqual([
      "/v1/chat/completions",
      ...[1, 2].flatMap(() => ["/tokenize", "/tokenize", "/tokenize", "/v1/completions"]),
    ]);
    // What the engine got as its last prompt, and what it sampled after that.
    expect([...token_ids]).toEqual([
      ...z.array(z.int()).parse(sent.at(-1)?.sampling["prompt"]),
      ...sampledIds(ANSWERS[2] ?? ""),
      255,
    ]);
    const trainable = [...token_ids].filter((_, at) => mask[at] === 1);
    expect(trainable).toEqual(ANSWERS.flatMap((answer) => [...sampledIds(answer), 255]));
    expect([...logprobs]).toEqual([...token_ids].map((id, at) => (mask[at] === 1 ? -((id % 7) + 1) / 8 : 0)));
  }
});

test("a completion of token ids asks for what the chat completion before it asked for", async () => {
  const model = modelOf();
  await trained({ model, prompts: "token_ids" });
  const requests = await requestsOf(model);
  const chat = requests.find(
    ({ path, idempotency_key }) => path.endsWith("/chat/completions") && idempotency_key.startsWith("ro_"),
  );
  const ids = requests.findLast(({ path }) => path === "/v1/completions");
  const { logprobs, ...asked } = chat?.sampling ?? {};
  expect(logprobs).toBe(true);
  // A completion without a limit would end after 16 tokens.
  const { prompt } = z.object({ prompt: z.array(z.int()) }).parse(ids?.sampling);
  expect(ids?.sampling).toEqual({ ...asked, prompt, logprobs: 0, max_tokens: 8192 - prompt.length });
});

const FALLBACKS = [
  { cause: "template", request: { sampling: { extra_body: { chat_template_kwargs: { system: "last" } } } } },
  { cause: "answer_end", request: { sampling: { extra_body: { chat_template_kwargs: { end: "other" } } } } },
  { cause: "tokenize_refused", more: { tokenize: { fault: { kind: "garbage" as const, text: "{}" } } } },
];

test.for(FALLBACKS)(
  "a prompt that cannot be proven is sent as messages and counted: %o",
  async ({ cause, request, more }) => {
    const model = modelOf(more);
    const { run } = await trained({ model, prompts: "token_ids", ...request });
    expect(run.training?.samples.prompts).toEqual({ [cause]: 4 });
    const paths = (await requestsOf(model)).map(({ path }) => path);
    // But for the probe.
    expect(paths.filter((path) => path === "/v1/completions")).toHaveLength(cause === "tokenize_refused" ? 0 : 1);
  },
);

test("tool calls are parsed by a server that takes token ids for a chat completion, and turns stay one sample", async () => {
  const held = { tool_calls: [{ id: "c", name: "hold", arguments: { what: "~" } }] };
  const calling = () => script([held, held, "Done ~."], undefined, { tokens: true });
  const environment = "tokens-tool";
  const messages = await trained({ environment, model: calling(), prompts: "token_ids" });
  expect(messages.run.training?.samples).toMatchObject({ clean: 2, forked: 4, prompts: { tools: 4 } });
  const model = calling();
  const { run, rows } = await trained({ environment, model, prompts: "chat_token_ids" });
  expect(run.training?.samples).toMatchObject({ clean: 2, forked: 0, prompts: { token_ids: 4 } });
  for (const { rollout_id, token_ids } of rows) {
    const sent = await sentBy(model, rollout_id);
    const [last, ...others] = sent.toReversed();
    expect(last?.path).toBe("/v1/chat/completions/tokens");
    expect(others.filter(({ path }) => path === "/tokenize")).toHaveLength(8);
    expect(sent.every(({ tools }) => tools.length === 1)).toBe(true);
    const prompt = z.array(z.int()).parse(last?.sampling["tokens"]);
    expect([...token_ids]).toEqual([...prompt, ...sampledIds("Done ~."), 255]);
    const { turns } = await api.rollout(rollout_id);
    expect(turns.map(({ completion }) => Array.isArray(completion["tool_calls"]))).toEqual([true, true, false]);
  }
});

const EVAL = {
  environment: "tokens-talk",
  prompts: "token_ids" as const,
  sampling: { extra_body: { return_token_ids: true } },
};

test("an unavailable /tokenize is a failed try of the call, and is tried again", async () => {
  const model = modelOf({ tokenize: { fault: { kind: "status", status: 503 }, times: 1, reply: "" } });
  // Each of the three requests of a turn fails once.
  const run = await api.finish({ ...EVAL, model, limits: { max_retries: 3 } });
  const { turns, failed_calls } = await api.rollout(rolloutAt(run.id));
  expect(turns.map(({ sent_prompt, calls }) => [sent_prompt, calls])).toEqual([
    [undefined, 1],
    ["token_ids", 1],
    ["token_ids", 1],
  ]);
  expect(failed_calls.length).toBeGreaterThan(0);
  expect(failed_calls[0]).toMatchObject({ status: 503, message: expect.stringContaining("/tokenize") });
});

/** Requests of the endpoint's probe, before the run exists. */
const PROBES = 2;

test("a process killed between /tokenize and the call, or during the call, sends one prompt", async () => {
  const model = modelOf({ held: true });
  const run = await api.start({ ...EVAL, model });
  const rollout = rolloutAt(run.id);
  const turn = `${rollout}:1`;
  await requestsOf(model, 1 + PROBES);
  await release(`${rollout}:0`);
  const names = ["before", "one", "other"].map((name) => `${turn}:tokenize:${name}`);
  const kill = () =>
    api
      .inRollout(rollout, (_, state) => state.abort("killed"))
      .catch((thrown) => expect(String(thrown)).toContain("killed"));
  // Killed while it waits for /tokenize: nothing was decided, and it is asked again.
  await requestsOf(model, 2 + PROBES);
  await kill();
  for (const name of names.slice(0, 1)) await release(name);
  for (const name of names) await release(name);
  await requestsOf(model, 6 + PROBES);
  // Killed while it waits for the completion: the same prompt is sent again, without /tokenize.
  await kill();
  await requestsOf(model, 7 + PROBES);
  const sent = await sentBy(model, rollout);
  const calls = sent.filter(({ path }) => path === "/v1/completions");
  expect(sent.slice(-2)).toEqual(calls);
  expect(calls[1]?.sampling).toEqual(calls[0]?.sampling);
  await release(turn);
  await release(turn);
  for (const name of ["before", "one", "other"]) await release(`${rollout}:2:tokenize:${name}`);
  await release(`${rollout}:2`);
  await api.ended(run.id);
  const { turns } = await api.rollout(rollout);
  expect(turns.map(({ calls: count, sent_prompt }) => [count, sent_prompt])).toEqual([
    [1, undefined],
    [2, "token_ids"],
    [1, "token_ids"],
  ]);
});

test.for([
  [{ prompts: "token_ids" }, "prompts: token_ids needs sampling.extra_body.return_token_ids true"],
  [
    { ...EVAL, answer_cache: true, sampling: { ...EVAL.sampling, temperature: 0 } },
    "prompts: token_ids cannot be combined with answer_cache",
  ],
  [{ ...EVAL, agent: { name: "a" } }, "prompts: token_ids cannot be combined with agent"],
  [
    { ...EVAL, sampling: { extra_body: { return_token_ids: true, echo: true } } },
    "prompts: token_ids cannot be combined with sampling.extra_body.echo",
  ],
  [
    { ...EVAL, sampling: { ...EVAL.sampling, reasoning_effort: "low" } },
    "prompts: token_ids cannot be combined with sampling.reasoning_effort",
  ],
  [{ prompts: "ids" }, "prompts"],
])("a request that cannot be played with token ids is refused: %o", async ([request, why]) => {
  const asked = {
    environment: "tokens-talk",
    model: "m",
    endpoint: { base_url: env.MODEL_URL },
    ...(request as object),
  };
  const response = await api.post("/v1/runs", asked);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(why);
});

test("an environment whose sampling is unfit for token ids rescores rollouts that were sampled with them", async () => {
  const endpoint = { base_url: env.MODEL_URL };
  const asked = { ...EVAL, model: modelOf(), endpoint };
  const refused = await api.post("/v1/runs", { ...asked, environment: "tokens-effort" });
  expect(await refused.text()).toContain("cannot be combined with the environment's sampling.reasoning_effort");
  const { id } = await api.finish(asked);
  const rescored = await api.post(`/v1/runs/${id}/rescore`, { environment: "tokens-effort" });
  expect(rescored.status).toBe(202);
  expect((await api.ended((await rescored.json<{ id: string }>()).id)).counts.scored).toBe(1);
});

test.for([
  [{ status: 404 }, "prompts: the endpoint has no /tokenize beside /v1, which token_ids needs (vLLM has it)"],
  [{ status: 400 }, "prompts: the endpoint's /tokenize, which token_ids needs, refused a question (400"],
  [{ status: 503 }, null],
] as const)("an endpoint without /tokenize is refused, but not one that is down: %o", async ([{ status }, why]) => {
  const model = modelOf({ tokenize: { fault: { kind: "status", status } } });
  const asked = { ...EVAL, model, endpoint: { base_url: env.MODEL_URL }, limits: { max_retries: 0 } };
  const response = await api.post("/v1/runs", asked);
  expect(response.status).toBe(why === null ? 202 : 400);
  if (why !== null) expect(await response.text()).toContain(why);
});
