import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "../fakes/scripted-model.ts";

const models: ScriptedModel[] = [];
afterEach(async () => {
  for (const model of models.splice(0)) await model.stop();
});

async function start(options: ScriptedModelOptions): Promise<ScriptedModel> {
  const model = await startScriptedModel(options);
  models.push(model);
  return model;
}

const HELLO = { model: "m", messages: [{ role: "user", content: "hello" }] };

function complete(model: ScriptedModel, body: unknown = HELLO, init: RequestInit = {}) {
  return fetch(`${model.url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": "ro_1:0" },
    body: JSON.stringify(body),
    ...init,
  });
}

test("a text becomes a complete chat completion", async () => {
  const model = await start({ reply: ({ messages }) => `You said ${messages[0]?.content}.` });
  const reply = await complete(model);
  expect(reply.status).toBe(200);
  expect(await reply.json()).toEqual({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 0,
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "You said hello." },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 15, completion_tokens: 4, total_tokens: 19 },
  });
});

test("tool calls have ids, JSON arguments and their finish reason", async () => {
  const model = await start({
    reply: () => ({
      tool_calls: [
        { name: "add", arguments: { a: 1 } },
        { id: "call_x", name: "add", arguments: "{broken" },
      ],
    }),
  });
  const { choices } = (await (await complete(model)).json()) as { choices: unknown[] };
  expect(choices[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: {
      content: null,
      tool_calls: [
        { id: "call_1_0", type: "function", function: { name: "add", arguments: '{"a":1}' } },
        { id: "call_x", type: "function", function: { name: "add", arguments: "{broken" } },
      ],
    },
  });
});

test("token ids, logprobs and further fields are where vLLM puts them", async () => {
  const model = await start({
    reply: () => ({
      content: "ok",
      prompt_token_ids: [1, 2, 3],
      token_ids: [4, 5],
      logprobs: [-0.5, -9999],
      extra: { weight_version: "7" },
    }),
  });
  expect(await (await complete(model)).json()).toMatchObject({
    prompt_token_ids: [1, 2, 3],
    weight_version: "7",
    choices: [
      {
        token_ids: [4, 5],
        logprobs: {
          content: [
            { token: "token_id:4", logprob: -0.5, bytes: null, top_logprobs: [] },
            { token: "token_id:5", logprob: -9999 },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
});

test("the next requests fail as set, and later ones do not", async () => {
  const model = await start({ reply: () => "fine" });
  model.failNext(1, { kind: "status", status: 429, headers: { "retry-after": "3" } });
  model.failNext(1, { kind: "reset" });
  model.failNext(1, { kind: "garbage" });
  model.failNext(1, { kind: "empty_choices" });
  const limited = await complete(model);
  expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "3"]);
  expect(await limited.json()).toMatchObject({ error: { code: 429, param: null } });
  await expect(complete(model)).rejects.toThrow("fetch failed");
  await expect((await complete(model)).json()).rejects.toBeInstanceOf(SyntaxError);
  expect(await (await complete(model)).json()).toMatchObject({ choices: [] });
  expect((await complete(model)).status).toBe(200);
  expect(model.requests.map((request) => request.status)).toEqual([429, null, 200, 200, 200]);
});

test("a hanging request stays in flight until its client gives up", async () => {
  const model = await start({ reply: () => "fine" });
  model.failNext(1, { kind: "hang" });
  const giveUp = new AbortController();
  const asked = complete(model, HELLO, { signal: giveUp.signal });
  await expect.poll(() => model.inFlight()).toBe(1);
  giveUp.abort();
  await expect(asked).rejects.toThrow("aborted");
  await expect.poll(() => model.inFlight()).toBe(0);
});

test("every request is in the log file before its answer is sent", async () => {
  const log = join(mkdtempSync(join(tmpdir(), "rollcall-model-")), "requests.jsonl");
  const model = await start({ reply: () => "fine", log });
  await complete(model);
  expect(JSON.parse(readFileSync(log, "utf8"))).toMatchObject({
    idempotency_key: "ro_1:0",
    model: "m",
    messages: 1,
    last_user: "hello",
  });
});

test("models are listed; anything else is 404, and a body without messages 400", async () => {
  const model = await start({ reply: () => "fine" });
  expect((await fetch(`${model.url}/models`)).status).toBe(200);
  expect((await fetch(`${model.url}/embeddings`)).status).toBe(404);
  expect((await complete(model, { prompt: "hello" })).status).toBe(400);
});

test("a busy port is replaced by a free one", async () => {
  const first = await start({ reply: () => "fine" });
  const second = await start({ reply: () => "fine", port: first.port });
  expect(second.port).not.toBe(first.port);
});

test("as a process it prints its address and answers from a dataset", async () => {
  const dataset = join(import.meta.dirname, "questions.jsonl");
  const main = join(import.meta.dirname, "../fakes/scripted-model-main.ts");
  const args = [main, "--behaviour", "altered", "--dataset", dataset];
  const child = execFile(process.execPath, args);
  const [line = ""] = (await createInterface({ input: child.stdout ?? process.stdin })
    [Symbol.asyncIterator]()
    .next()
    .then((first) => [first.value])) as string[];
  const { url, pid } = JSON.parse(line);
  expect(pid).toBe(child.pid);
  const reply = await fetch(`${url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ messages: [{ role: "user", content: "2 + 1,000?" }] }),
  });
  const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] };
  expect(choices[0]?.message.content).toBe("2 + 1,000 = 1,002\n#### 1003\n\\boxed{1003}");
  child.kill("SIGTERM");
});
